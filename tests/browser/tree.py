"""What the messages of Streamlit 1.67 make of a page: the tree of elements as its frontend builds it.

A delta path is a list of places from the root. What a full run, or the run of a fragment, did not draw again is taken
out when it ends, and all behind it moves up. A path that leads nowhere is an error that empties the page in a browser,
one that leads to a neighbour overwrites it without a word. Both raise `BrokenTree` here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

WHOLE = (ForwardMsg.FINISHED_SUCCESSFULLY, ForwardMsg.FINISHED_FRAGMENT_RUN_SUCCESSFULLY)


class BrokenTree(Exception):
    """The page of a browser is lost from then on."""


@dataclass
class Node:
    """`element` None: a block, of the kind `block`; `run`, `fragment` and `script`: who drew it last."""

    element: Any = None
    block: str | None = ""
    run: str = ""
    fragment: str = ""
    script: str = ""
    children: list[Node] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        yield self
        for child in self.children:
            yield from child.walk()


class Tree:
    def __init__(self) -> None:
        self._root = Node(children=[Node() for _ in range(4)])
        self._run = ""
        self._fragments: frozenset[str] = frozenset()
        self.page: str | None = None
        """Its hash."""

    def elements(self) -> Iterator[Node]:
        return (node for node in self._root.walk() if node.element is not None)

    def take(self, message: ForwardMsg) -> None:
        kind = message.WhichOneof("type")
        if kind == "new_session":
            self._begin(message)
        elif kind == "navigation":
            self.page = message.navigation.page_script_hash
        elif kind == "script_finished" and message.script_finished in WHOLE:
            self._finish(message)
        elif kind == "delta" and message.delta.WhichOneof("type") in ("new_element", "add_block"):
            self._put(message)

    def _begin(self, message: ForwardMsg) -> None:
        known, self.page = self.page, message.new_session.page_script_hash
        if known not in (None, self.page):
            for part in self._root.children:
                _keep_of(part, message.new_session.main_script_hash)
        self._run = message.metadata.run.script_run_id
        self._fragments = frozenset(message.metadata.run.fragment_ids)

    def _finish(self, message: ForwardMsg) -> None:
        run, fragments = message.metadata.run.script_run_id, frozenset(message.metadata.run.fragment_ids)
        if fragments or run == self._run:
            for part in self._root.children:
                _take_out(part, run, fragments, is_inside=False)

    def _put(self, message: ForwardMsg) -> None:
        delta, path = message.delta, list(message.metadata.delta_path)
        is_block = delta.WhichOneof("type") == "add_block"
        new = Node(
            element=None if is_block else delta.new_element,
            block=delta.add_block.WhichOneof("type") if is_block else None,
            run=self._run,
            fragment=delta.fragment_id,
            script=message.metadata.active_script_hash,
        )
        at, inside = self._root.children[path[0]], False
        for place in path[1:-1]:
            at.run = self._run
            if at.element is not None or place >= len(at.children):
                raise BrokenTree(f"nothing at {place} of {path}, where {_told(new)} belongs")
            at = at.children[place]
            inside = inside or at.fragment == new.fragment
        at.run, place = self._run, path[-1]
        if at.element is not None or place > len(at.children):
            raise BrokenTree(f"{_told(new)} cannot stand at {path}: {len(at.children)} stand there")
        if place == len(at.children):
            at.children.append(new)
            return
        old = at.children[place]
        if new.fragment in self._fragments and not inside and old.fragment != new.fragment:
            raise BrokenTree(f"{_told(new)} of a fragment takes the place of {_told(old)} at {path}")
        if old.element is None and new.element is None and old.block == new.block:
            new.children = old.children
        at.children[place] = new


def _take_out(block: Node, run: str, fragments: Collection[str], is_inside: bool) -> None:
    """`is_inside`: of a fragment that was drawn; what is not is of another run, and stays."""
    kept = []
    for child in block.children:
        if child.element is not None:
            is_kept = child.run == run or (bool(fragments) and not (child.fragment and is_inside))
        else:
            is_kept = child.run == run or (bool(fragments) and not is_inside)
            begins = child.fragment in fragments and child.run == run
            _take_out(child, run, fragments, is_inside or begins)
        if is_kept:
            kept.append(child)
    block.children = kept


def _keep_of(block: Node, script: str) -> None:
    """On a page turn only what app.py itself has drawn stays."""
    block.children = [child for child in block.children if child.script == script]
    for child in block.children:
        _keep_of(child, script)


def _told(node: Node) -> str:
    return f"block {node.block!r}" if node.element is None else str(node.element.WhichOneof("type"))
