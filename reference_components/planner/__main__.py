"""`python -m reference_components.planner` serves until SIGTERM."""

from reference_components.planner.component import make

make().run()
