"""`python -m reference_components.memory` serves until SIGTERM; MEMORY_FILE keeps everything."""

import os
from pathlib import Path

from reference_components.memory.component import make

make(Path(os.environ.get("MEMORY_FILE", "memory.db"))).run()
