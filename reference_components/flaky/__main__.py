"""`python -m reference_components.flaky`; FLAKY_SCRIPT (a JSON list) is for calls that bring
none.
"""

import json
import os

from reference_components.flaky.component import make

make(json.loads(os.environ.get("FLAKY_SCRIPT", "[]"))).run()
