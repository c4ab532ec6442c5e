"""`python -m reference_components.echo` serves until SIGTERM."""

from reference_components.echo.component import make

make().run()
