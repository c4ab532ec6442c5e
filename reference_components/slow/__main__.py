"""`python -m reference_components.slow` serves until SIGTERM."""

from reference_components.slow.component import make

make().run()
