"""`python -m reference_components.reflector` serves until SIGTERM."""

from reference_components.reflector.component import make

make().run()
