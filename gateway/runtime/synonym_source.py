"""A workflow's file with more synonyms and another version, and nothing else changed.

The file is edited, not written anew: comments, order and spellings stay. Whether that succeeded is
checked afterwards, by the same reader that the gateway uses; a file that cannot be edited so is
refused, with what to do by hand.
"""

import io
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError

from acp_spec.bindings.errors import error
from acp_spec.codec.yaml_tree import Mapping as MappingTree
from acp_spec.codec.yaml_tree import Scalar, Tree, json_text, read_tree
from acp_spec.codec.yaml_tree import Sequence as SequenceTree
from acp_spec.model.errors import AcpFailure, Reason

# Lines are never broken: what a person wrote on one line stays on one.
WIDTH: Final = 1_000_000
_MEMBERS: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])

Members = dict[str, msgspec.Raw]


class Synonym(msgspec.Struct, frozen=True, kw_only=True):
    """`value` shall mean the domain's value `means`."""

    domain: str
    value: str
    means: str


def with_synonyms(source: str, synonyms: Sequence[Synonym], *, version: str) -> str:
    """The file as the next version; INVALID_REQUEST where it cannot be edited."""
    yaml = _reader()
    try:
        document = yaml.load(source)
        _add(document, synonyms)
        document["version"] = version
        written = io.StringIO()
        yaml.dump(document, written)
    except (YAMLError, KeyError, TypeError, AttributeError) as problem:
        raise _by_hand(f"{type(problem).__name__} while it was edited") from None
    edited = written.getvalue()
    wanted = _spellings(source)
    for synonym in synonyms:
        wanted[synonym.domain][synonym.means].append(synonym.value)
    if _rest(edited) != _rest(source) or _spellings(edited) != wanted:
        raise _by_hand("something else in it would change")
    return edited


def _reader() -> YAML:
    yaml = YAML()  # the round-trip reader: it keeps what it does not understand
    yaml.preserve_quotes = True
    yaml.width = WIDTH
    yaml.indent(mapping=2, sequence=4, offset=2)
    return yaml


def _add(document: CommentedMap, synonyms: Sequence[Synonym]) -> None:
    domains = document["contract"]["semantics"]["domains"]
    for synonym in synonyms:
        domain = domains[synonym.domain]
        if isinstance(domain["values"], CommentedSeq):
            domain["values"] = CommentedMap((value, CommentedSeq()) for value in domain["values"])
        values = domain["values"]
        key = next((key for key in values if str(key) == synonym.means), None)
        if key is None:
            raise KeyError(synonym.means)
        values[key].append(synonym.value)


def _spellings(source: str) -> dict[str, dict[str, list[str]]]:
    """Every domain's values with their synonyms, as they are spelled in the file."""
    tree: Tree | None = read_tree(source.encode()).tree
    for key in ("contract", "semantics", "domains"):
        tree = tree.get(key) if isinstance(tree, MappingTree) else None
    found: dict[str, dict[str, list[str]]] = {}
    for entry in tree.entries if isinstance(tree, MappingTree) else ():
        values = entry.value.get("values") if isinstance(entry.value, MappingTree) else None
        if isinstance(values, MappingTree):
            named = {one.key.text: _texts(one.value) for one in values.entries}
        else:
            named = {text: [] for text in _texts(values)}
        found[entry.key.text] = named
    return found


def _texts(tree: Tree | None) -> list[str]:
    items = tree.items if isinstance(tree, SequenceTree) else ()
    return [item.text for item in items if isinstance(item, Scalar)]


def _rest(source: str) -> tuple[object, ...]:
    """Everything but the version and the values of the domains, number by number as it stands."""
    tree = read_tree(source.encode()).tree
    if tree is None:
        raise _by_hand("it could not be read again")
    workflow = _MEMBERS.decode(json_text(tree))
    workflow.pop("version", None)
    contract = _inner(workflow, "contract")
    semantics = _inner(contract, "semantics")
    domains = {
        name: _plain(_without_values(domain))
        for name, domain in _inner(semantics, "domains").items()
    }
    return (_plain(workflow), _plain(contract), _plain(semantics), domains)


def _inner(outer: Members, name: str) -> Members:
    """Take a member out and give it as an object; nothing there is an empty one."""
    found = outer.pop(name, None)
    return {} if found is None else _MEMBERS.decode(bytes(found))


def _without_values(domain: msgspec.Raw) -> Members:
    members = _MEMBERS.decode(bytes(domain))
    members.pop("values", None)
    return members


def _plain(members: Mapping[str, msgspec.Raw]) -> dict[str, bytes]:
    return {name: bytes(value) for name, value in members.items()}


def _by_hand(why: str) -> AcpFailure:
    message = f"the workflow's file cannot be edited here ({why}): put the new version by hand"
    return AcpFailure(error(Reason.INVALID_REQUEST, message))
