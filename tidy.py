"""Style is a test: everything STYLE.md demands that a machine can see, one rule per function.

`python tidy.py` reads every file git knows, prints `file:line: rule: what to do` per offence and
exits 1 if there is one. A rule has no exceptions but those in the tables below, each with a reason.
It reads source text only and imports nothing of what it judges.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60
PARAMETERS_MAX = 5
POSITIONAL_MAX = 2

CODE_SUFFIXES = frozenset({".py", ".go", ".ts", ".java", ".cob", ".cbl", ".sh"})
PACKAGES = frozenset(
    {"acp_spec", "gateway", "adapters", "reference_components", "trainer", "conformance_tests"}
)
GENERATED = re.compile(r"(_pb2(_grpc)?\.pyi?|/?_generated_[^/]*)$")

BANNED_NAMES = frozenset({"utils", "util", "helpers", "helper", "common", "manager", "misc"})
BANNED_AFFIXES = re.compile(r"(^(new|enhanced|improved)_|_(v\d+|new|old|enhanced|improved)$)")
# word -> what to write instead; looked for in code and prose
BANNED_WORDS = {
    "utilize": "use",
    "leverage": "use",
    "robust": "say against what",
    "seamless": "say what works together",
    "seamlessly": "say what works together",
    "comprehensive": "say what is covered",
    "blazing": "give the figure",
    "cutting-edge": "say what is new",
    "FIXME": "mend it, or name an issue",
    "HACK": "say why it is so",
}

PURE_FOLDERS = (
    "acp_spec/model",
    "gateway/engine",
    "gateway/governance",
    "gateway/expressions",
    "gateway/rewards",
    "gateway/insight",
)
PURE_CALLS_BANNED = frozenset({"open", "print", "input", "exec", "eval", "__import__"})
# What a pure folder may import; a new line here needs a reader's agreement.
PURE_IMPORTS = frozenset(
    {
        *("__future__", "abc", "base64", "binascii", "bisect", "collections", "dataclasses"),
        *("decimal", "enum", "functools", "hashlib", "hmac", "heapq", "itertools", "json"),
        *("math", "operator", "re", "string", "struct", "types", "typing", "unicodedata"),
        *("msgspec", "rfc8785"),
        "cel",  # compiled expressions; gateway/expressions bounds them before they run
        *("jsonschema_rs", "jiter"),  # compiled scanners of payloads, offline
        *("acp_spec.model", "acp_spec.bindings", "acp_spec.codec"),
        *("gateway.engine", "gateway.governance", "gateway.expressions", "gateway.rewards"),
    }
)

# What one pure folder may import beyond that: its chance comes in as a generator.
PURE_IMPORTS_OF = {"gateway/insight": frozenset({"numpy", "gateway.insight"})}

# Loops that must outlive any single failure, and libraries without exceptions of their own.
# Cleaning up and raising again is no catching and needs no line here.
BROAD_EXCEPT_FILES: dict[str, str] = {
    "gateway/runtime/committer.py": "one callback's fault must not lose the others of its commit",
    "gateway/runtime/driver.py": "a fault of ours in one session ends that one, not the gateway",
    "gateway/runtime/lasting.py": "a look that fails must not end the loop that looks",
    "gateway/runtime/rollout_traffic.py": "a rollout's fault must not cost a caller its session",
    "gateway/runtime/rollouts.py": "a fault in judging once must not end all judging",
    "gateway/runtime/twins.py": "whoever waits for a twin is told, whatever became of it",
    "gateway/runtime/outbox.py": "a damaged record must not hold up the others",
    "gateway/simulation/virtual_loop.py": "what the simulated gateway raises is what is looked for",
    "gateway/stores/archive/object_store.py": "stores behind fsspec raise anything; only here",
    "gateway/stores/rocksdb.py": "rocksdict raises bare Exception; translated here, nowhere else",
    "gateway/transports/own_failures.py": "our own mistake in a request is logged, INTERNAL",
    "acp_spec/sdk/executions.py": "a component's handler is foreign code; logged, INTERNAL",
}

# Modules that nothing imports and that are no entry point, each with the reason why it lives.
LIVING_MODULES: dict[str, str] = {
    "reference_components.scratchpad.program.evaluate": "the program that runs in the sandbox",
    "acp_spec.sdk.warden.watch": "a process of its own, started by acp_spec.sdk.sandbox",
    "gateway.stores.reader": "the trainer's door",
    "gateway.stores.archive.child": "a process of its own, started by gateway.assembly.archiving",
    "gateway.stores.records.child": "a process of its own, started by gateway.assembly.recording",
    "gateway.stores.forgetful": "a power cut, shipped for whoever tests what stands on a store",
}
# Functions whose parameters a framework dictates (an option or a route part each).
DICTATING_DECORATORS = frozenset(
    {"command", "callback", "get", "post", "put", "delete", "exception_handler", "fixture"}
)
# The triple that every key-value store takes in this order; naming the value would only add noise.
STORE_PUT_PARAMETERS = ("table", "key", "value")
ASGI_PARAMETERS = ("scope", "receive", "send")

# Put together from halves, so that this file does not offend.
WORKPLACE = re.compile("/(" + "wo" + "rk|fa" + "rm)/")
REGISTRIES = re.compile("|".join(("registry" + r"\.npmjs", "pypi" + r"\.org", "python" + "hosted")))
OPEN_TASK = re.compile(r"\b" + "TO" + r"DO\b(?!\s*\(?#\d+)")


@dataclass(frozen=True, slots=True, order=True)
class Offence:
    """One place to change, and what to do there."""

    path: str
    line: int
    rule: str
    advice: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: {self.advice}"


@dataclass(frozen=True)
class Source:
    """One file of the tree; the syntax tree is parsed when first asked for."""

    path: str
    text: str = field(repr=False)

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed module; empty for what is no Python."""
        return ast.parse(self.text) if self.is_python else ast.Module(body=[], type_ignores=[])

    @property
    def is_python(self) -> bool:
        return self.path.endswith(".py")

    @property
    def is_code(self) -> bool:
        return PurePosixPath(self.path).suffix in CODE_SUFFIXES

    @property
    def is_test(self) -> bool:
        parts = PurePosixPath(self.path).parts
        return "tests" in parts or parts[-1] == "conftest.py"

    @property
    def is_pure(self) -> bool:
        return not self.is_test and self.path.startswith(tuple(f"{f}/" for f in PURE_FOLDERS))

    @property
    def module(self) -> str:
        """Dotted name; a package is named by its folder."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    def offence(self, line: int, rule: str, *, advice: str) -> Offence:
        return Offence(self.path, line, rule, advice)


def imports_of(source: Source) -> Iterator[tuple[int, str]]:
    """Every imported dotted name with its line; `from a import b` gives `a` and `a.b`."""
    package = (
        source.module if source.path.endswith("__init__.py") else source.module.rpartition(".")[0]
    )
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                up = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*up, base] if base else up)
            yield node.lineno, base
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def functions_of(source: Source) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Every function and method, nested ones too."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


# ---- rules: one file at a time ----------------------------------------------------------------


def file_size(source: Source) -> Iterator[Offence]:
    """Nobody scrolls through more than 500 lines."""
    lines = source.text.count("\n")
    if source.is_code and lines > FILE_LINES_MAX:
        yield source.offence(
            1, "file-size", advice=f"{lines} lines, at most {FILE_LINES_MAX}: split it by subject"
        )


def function_size(source: Source) -> Iterator[Offence]:
    """A function fits on a screen."""
    for node in functions_of(source):
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > FUNCTION_LINES_MAX:
            yield source.offence(
                node.lineno,
                "function-size",
                advice=f"{node.name} has {lines} lines, at most {FUNCTION_LINES_MAX}: keep the"
                " branching here and move the work into leaves",
            )


def parameters(source: Source) -> Iterator[Offence]:
    """At most five parameters, by keyword after the second."""
    if source.is_test:
        return
    for node in functions_of(source):
        if _is_dictated(node):
            continue
        positional = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
        if positional[:1] in (["self"], ["cls"]):
            positional = positional[1:]
        count = len(positional) + len(node.args.kwonlyargs)
        if count > PARAMETERS_MAX:
            yield source.offence(
                node.lineno,
                "parameters",
                advice=f"{node.name} has {count}, at most {PARAMETERS_MAX}: put those of one kind"
                " into one dataclass",
            )
        elif len(positional) > POSITIONAL_MAX:
            yield source.offence(
                node.lineno,
                "keyword-only",
                advice=f"put `*` after `{positional[POSITIONAL_MAX - 1]}` in {node.name}",
            )


def _is_dictated(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """True where somebody else's contract fixes the parameters."""
    if node.name.startswith("__") and node.name.endswith("__") and node.name != "__init__":
        return True
    every = (*node.args.args, *node.args.kwonlyargs)
    names = tuple(a.arg for a in every if a.arg != "self")
    if names in (ASGI_PARAMETERS, STORE_PUT_PARAMETERS):
        return True
    if any("typer." in ast.unparse(a.annotation) for a in every if a.annotation):
        return True  # each parameter is an option of a command
    return any(_decorator_name(one) in DICTATING_DECORATORS for one in node.decorator_list)


def _decorator_name(node: ast.expr) -> str:
    target = node.func if isinstance(node, ast.Call) else node
    return target.attr if isinstance(target, ast.Attribute) else ""


def module_name(source: Source) -> Iterator[Offence]:
    """A module is named by its subject, and never like a library it uses."""
    if not source.is_code:
        return
    parts = PurePosixPath(source.path).with_suffix("").parts
    for part in parts:
        if part in BANNED_NAMES or BANNED_AFFIXES.search(part):
            yield source.offence(
                1, "module-name", advice=f"`{part}` names no subject: say what it is"
            )
    if any(name.partition(".")[0] == parts[-1] for _, name in imports_of(source)):
        yield source.offence(
            1, "module-name", advice=f"`{parts[-1]}` is a library it uses: rename it"
        )


def words(source: Source) -> Iterator[Offence]:
    """Words that claim instead of saying."""
    if source.path in {"tidy.py", "tests/test_tidy.py", "STYLE.md"}:
        return
    pattern = re.compile(r"\b(" + "|".join(BANNED_WORDS) + r")\b", re.IGNORECASE)
    for number, line in enumerate(source.text.splitlines(), 1):
        for match in pattern.finditer(line):
            word = match[0] if match[0] in BANNED_WORDS else match[0].lower()
            if word in BANNED_WORDS:  # HACK is banned, hack is not
                yield source.offence(number, "word", advice=f"`{match[0]}`: {BANNED_WORDS[word]}")


def docstring(source: Source) -> Iterator[Offence]:
    """Each module begins with what it is for, its rule, what it must not do."""
    if source.is_python and source.text.strip() and not ast.get_docstring(source.tree):
        yield source.offence(
            1, "docstring", advice="begin with what the module is for and its rule"
        )


def mocks(source: Source) -> Iterator[Offence]:
    """Fakes that ship with the code instead of patches."""
    for line, name in imports_of(source):
        if name in {"unittest.mock", "mock"}:
            yield source.offence(line, "mock", advice="write a small fake with the port's methods")


def sleeps(source: Source) -> Iterator[Offence]:
    """A test that sleeps is slow or flaky."""
    if not source.is_test:
        return
    for line, name in imports_of(source):
        if name == "time.sleep":
            yield source.offence(
                line, "sleep", advice="wait for the thing itself, or use a manual clock"
            )
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "time.sleep":
            yield source.offence(
                node.lineno, "sleep", advice="wait for the thing itself, or use a manual clock"
            )


def purity(source: Source) -> Iterator[Offence]:
    """Pure folders take values and return values."""
    if not source.is_pure:
        return
    for node in ast.walk(source.tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in PURE_CALLS_BANNED
        ):
            yield source.offence(
                node.lineno,
                "purity",
                advice=f"{node.func.id}() acts: take the value as an argument",
            )
    seen: set[int] = set()
    for line, name in imports_of(source):
        if line not in seen and not _may_import(name, source.path):
            seen.add(line)
            yield source.offence(
                line, "purity", advice=f"{name} is not on PURE_IMPORTS: pass in what it would give"
            )


def _may_import(name: str, path: str) -> bool:
    allowed = PURE_IMPORTS.union(
        *(more for folder, more in PURE_IMPORTS_OF.items() if path.startswith(f"{folder}/"))
    )
    parts = name.split(".")
    prefixes = {".".join(parts[: n + 1]) for n in range(len(parts))}
    # `from acp_spec import model` also names the bare package
    return name in PACKAGES or bool(prefixes & allowed)


def open_tasks(source: Source) -> Iterator[Offence]:
    """What is left to do has an issue, or is done."""
    if not source.is_code or source.path in {"tidy.py", "tests/test_tidy.py"}:
        return
    for number, line in enumerate(source.text.splitlines(), 1):
        if OPEN_TASK.search(line):
            yield source.offence(number, "open-task", advice="name its issue as (#12), or do it")


def broad_excepts(source: Source) -> Iterator[Offence]:
    """Only loops that must live catch everything."""
    if source.path in BROAD_EXCEPT_FILES:
        return
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ExceptHandler) and _catches_all(node):
            yield source.offence(
                node.lineno,
                "broad-except",
                advice="name the exceptions; a loop that must live goes on BROAD_EXCEPT_FILES",
            )


def _catches_all(handler: ast.ExceptHandler) -> bool:
    caught, last = handler.type, handler.body[-1]
    if isinstance(last, ast.Raise) and last.exc is None:
        return False
    if caught is None:
        return True
    names = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(isinstance(n, ast.Name) and n.id in {"Exception", "BaseException"} for n in names)


def places(source: Source) -> Iterator[Offence]:
    """No path of the machine it was written on, no registry it was fetched from."""
    for number, line in enumerate(source.text.splitlines(), 1):
        if WORKPLACE.search(line):
            yield source.offence(
                number, "place", advice="a path of one machine: take it from ACP_DATA"
            )
        if REGISTRIES.search(line):
            yield source.offence(
                number, "place", advice="names a registry: keep name and version only"
            )


FILE_RULES: tuple[Callable[[Source], Iterator[Offence]], ...] = (
    file_size,
    function_size,
    parameters,
    module_name,
    words,
    docstring,
    mocks,
    sleeps,
    purity,
    open_tasks,
    broad_excepts,
    places,
)


# ---- rules: the tree as a whole ---------------------------------------------------------------


def dead_modules(sources: Iterable[Source]) -> Iterator[Offence]:
    """A module that no code imports and no entry point names is dead, tests or not."""
    every = tuple(sources)
    imported = {name for s in every if not s.is_test for _, name in imports_of(s)}
    named = "\n".join(s.text for s in every if not s.is_python and not s.path.endswith(".md"))
    for source in every:
        if not _may_be_dead(source) or source.module in imported:
            continue
        if not re.search(rf"{re.escape(source.module)}\b|{re.escape(source.path)}", named):
            yield source.offence(
                1,
                "dead-module",
                advice="nothing imports it: remove it, or name it on LIVING_MODULES",
            )


def _may_be_dead(source: Source) -> bool:
    return (
        source.is_python
        and source.path.partition("/")[0] in PACKAGES
        and not source.is_test
        and not source.path.endswith(("__init__.py", "__main__.py"))
        and source.module not in LIVING_MODULES
    )


def stale_exceptions(sources: Iterable[Source]) -> Iterator[Offence]:
    """An exception outlives its reason only until the next run."""
    every = {s.path: s for s in sources}
    modules = {s.module for s in every.values()}
    for path in BROAD_EXCEPT_FILES:
        tree = every[path].tree if path in every else ast.Module(body=[], type_ignores=[])
        if not any(isinstance(n, ast.ExceptHandler) and _catches_all(n) for n in ast.walk(tree)):
            yield Offence("tidy.py", 1, "stale", f"{path} catches nothing broadly: take it off")
    for module in LIVING_MODULES:
        if module not in modules:
            yield Offence("tidy.py", 1, "stale", f"{module} does not exist: take it off")


TREE_RULES: tuple[Callable[[Iterable[Source]], Iterator[Offence]], ...] = (
    dead_modules,
    stale_exceptions,
)


# ---- the walk ---------------------------------------------------------------------------------


def judge(sources: Iterable[Source]) -> list[Offence]:
    """All offences of a set of files, sorted; generated files are judged by nobody."""
    written = [s for s in sources if not GENERATED.search(s.path)]
    found = [offence for s in written for rule in FILE_RULES for offence in rule(s)]
    found += [offence for rule in TREE_RULES for offence in rule(written)]
    return sorted(set(found))


def read_tree(root: Path) -> list[Source]:
    """Every text file that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=root,
        check=True,
        capture_output=True,
    ).stdout.decode()
    paths = (name for name in listed.split("\0") if name and (root / name).is_file())
    return [source for name in paths if (source := _read(root, name)) is not None]


def _read(root: Path, name: str) -> Source | None:
    try:
        return Source(name, (root / name).read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        return None  # no text, nothing to judge


def main() -> int:
    """Print the offences of this checkout; 1 if there are any."""
    offences = judge(read_tree(Path(__file__).parent))
    for offence in offences:
        print(offence)
    print(f"tidy: {len(offences)} offences" if offences else "tidy: all good")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
