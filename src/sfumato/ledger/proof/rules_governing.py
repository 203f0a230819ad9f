"""The rules of entries about who may: birth, writers, restores, the policy, approvals, and what is told without DP."""

from __future__ import annotations

from ... import record
from ..policy.approvals import Act, Approval, Approvals, until
from ..policy.policy import Policy
from .state import Entry, EntryError, State


def birth(state: State, entry: Entry) -> None:
    if state.number:
        raise EntryError("a ledger is born once, with its first entry")


def writer(state: State, entry: Entry) -> None:
    if not isinstance(entry["key"], str):
        raise EntryError("a writer enters with the key of the anchor")
    state.facts["anchor", ""] = entry["key"]


def restored(state: State, entry: Entry) -> None:
    """Two persons, of whom one did it, answered for an older copy."""
    if state.policy is None:
        return
    names = entry["principals"]
    if len(set(names)) < 2 or entry["by"] not in names or any(state.policy.refusal(n, "restore") for n in names):
        raise EntryError("whoever wrote it was not allowed to by the policy")


def policy(state: State, entry: Entry) -> None:
    policy = entry["policy"]
    if not isinstance(policy, Policy):
        raise EntryError("it holds no policy")
    if state.policy is None and policy.refusal(entry["by"], "adopt") is not None:
        raise EntryError("whoever wrote it was not allowed to by the policy")
    approved(state, entry, Act(do="adopt", on="", what=record.digest(policy)), "adopt")
    state.facts["policy", ""] = policy


def ask(state: State, entry: Entry) -> None:
    act = entry["act"]
    if not isinstance(act, Act) or state.policy is None:
        raise EntryError("nothing needs an approval")
    asking = ("spend", "grant", "register", "adopt", "declare")
    if all(state.policy.refusal(entry["by"], duty) is not None for duty in asking):
        raise EntryError("whoever wrote it was not allowed to by the policy")
    state.facts.setdefault(("approval", record.digest(act)), Approvals(act=act))


def approve(state: State, entry: Entry) -> None:
    name = record.digest(entry["act"])
    asked: Approvals | None = state.facts.get(("approval", name))
    if asked is None or state.policy is None:
        raise EntryError("nobody asked for that approval")
    if entry["until"] > until(state.time, state.policy.approval_days):
        raise EntryError("it approves for longer than the policy lets it")
    given = Approval(by=entry["by"], number=entry["number"], until=entry["until"])
    state.facts["approval", name] = asked.plus(given)


def declare(state: State, entry: Entry) -> None:
    act = Act(
        do=entry["of"], on=entry["data"], what=record.digest({"text": entry["text"], "recipients": entry["recipients"]})
    )
    approved(state, entry, act, entry["of"])


def approved(state: State, entry: Entry, act: Act, what: str) -> None:
    """The policy's number of others have approved; their approvals are used up."""
    if state.policy is None:
        return
    if used(state, entry, act) < state.policy.approvals(what):
        raise EntryError("it lacks approvals")


def used(state: State, entry: Entry, act: Act) -> int:
    assert state.policy is not None
    name = record.digest(act)
    given: Approvals = state.facts.get(("approval", name)) or Approvals(act=act)
    good = {each.number for each in given.valid(state.policy, entry["by"], state.time)}
    if not set(entry["approvals"]) <= good:
        raise EntryError("it names approvals that were not given, had run out or were used before")
    if entry["approvals"]:
        state.facts["approval", name] = Approvals(act=act)
    return len(set(entry["approvals"]))
