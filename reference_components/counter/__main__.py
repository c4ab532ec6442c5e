"""`python -m reference_components.counter` serves until SIGTERM; COUNTER_FILE keeps the counts."""

import os
from pathlib import Path

from reference_components.counter.component import make

make(Path(os.environ.get("COUNTER_FILE", "counter.db"))).run()
