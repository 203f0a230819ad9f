"""What officers do: adopt a policy, approve, unlock, and enter what leaves the data without differential privacy."""

from __future__ import annotations

from dataclasses import replace

from .. import address, checks, record
from ..errors import LedgerError, PolicyError
from .desk import Desk, short
from .grants import Grants
from .policy.approvals import Act, Approval, Approvals, ledger_time, until
from .policy.policy import AccountRule, Policy
from .pricing import priced_before
from .proof.anchored import AnchoredStore
from .proof.headed import HeadedStore
from .stores.base import Account
from .tree import data_set, found

DECLARED = ("without DP", "invariant")
ASKING = ("spend", "grant", "register", "adopt", "declare")  # duties whose acts may take approvals


def _differs(account: Account | None, rule: AccountRule, lower: bool = False) -> bool:
    """Has the account another limit than the policy lists; with `lower`, one that is above it?"""
    if account is None or account.filter is None or rule.limit is None:
        return False
    now, listed = account.filter.budget, rule.limit
    same = (now.epsilon, now.delta, now.rho) == (listed.epsilon, listed.delta, listed.rho)
    return not same and (not lower or listed.within(now))


class Governance:
    """Keeps the rules."""

    def __init__(self, desk: Desk, grants: Grants) -> None:
        self._desk, self._grants = desk, grants

    def policy(self) -> Policy | None:
        """The policy in force."""
        with self._desk.reading() as book:
            policy: Policy | None = book.fact("policy", "")
            return policy

    def adopt(self, policy: Policy, *, reason: str) -> None:
        """From now on every process obeys this policy. The first one is adopted by a person whom it names an adopter;
        another one takes approvals under the policy before it."""
        checks.instance(policy, Policy, "policy", "a Policy, such as load_policy('policy.yaml')")
        checks.label(reason, "reason")
        with self._desk.writing() as book:
            before = self._desk.policy(book, "adopt")
            if before is None and (refusal := policy.refusal(self._desk.principal, "adopt")) is not None:
                raise PolicyError(refusal)
            act = Act(do="adopt", on="", what=record.digest(policy))
            needed = 0 if before is None else before.approvals("adopt")
            approvals = self._desk.approved(book, before, act, needed, "another policy")
            self._desk.write(
                book, "policy", {"policy": policy, "reason": short(reason, "reason"), "approvals": approvals}
            )
            book.put_fact("policy", "", policy)

    @priced_before
    def provision(self) -> tuple[str, ...]:
        """Bring the accounts to what the policy lists: open those that are missing, change limits that differ. All of
        it, or, where one is refused or needs approvals, none. Says what was done."""
        done = []
        with self._desk.writing() as book:
            policy = self._desk.policy(book, "grant")
            if policy is None:
                raise PolicyError("there is no policy in force: adopt one first")
            reason, rules = "listed in the policy", policy.from_the_top()
            for rule in reversed(rules):  # what is lowered gives way from below
                if rule.limit is not None and _differs(book.account(rule.name), rule, lower=True):
                    self._grants.limit(book, policy, rule.name, rule.limit, reason)
                    done.append(f"changed {rule.name} to {rule.limit}")
            for rule in rules:
                account = book.account(rule.name)
                if account is None:
                    self._grants.begin(
                        book, policy, rule.name, rule.limit, rule.parent, rule.level, rule.protects, reason
                    )
                    done.append(f"opened {rule.name}")
                elif rule.limit is not None and _differs(account, rule):
                    self._grants.limit(book, policy, rule.name, rule.limit, reason)
                    done.append(f"changed {rule.name} to {rule.limit}")
        return tuple(done)

    def ask(self, act: Act, *, reason: str) -> str:
        """Ask others for approval; the name that they answer with."""
        checks.instance(act, Act, "act", "what a PolicyError names as `error.act`")
        checks.label(reason, "reason")
        with self._desk.writing() as book:
            policy: Policy | None = book.fact("policy", "")
            if policy is None:
                raise PolicyError("there is no policy in force, so nothing needs an approval")
            if all(policy.refusal(self._desk.principal, duty) is not None for duty in ASKING):
                raise PolicyError(policy.refusal(self._desk.principal, "spend") or "")
            name = record.digest(act)
            self._desk.write(book, "ask", {"act": act, "reason": short(reason, "reason")})
            if book.fact("approval", name) is None:
                book.put_fact("approval", name, Approvals(act=act))
            return name

    def pending(self) -> dict[str, Approvals]:
        """What was asked for, by name, with the approvals so far."""
        with self._desk.reading() as book:
            return book.facts("approval")

    def approve(self, name: str, *, reason: str) -> None:
        """Approve what was asked for under that name. An approval serves once, and runs out."""
        checks.label(reason, "reason")
        with self._desk.writing() as book:
            policy = self._desk.policy(book, "approve")
            asked: Approvals | None = book.fact("approval", checks.label(name, "name"))
            if policy is None or asked is None:
                raise PolicyError(
                    "nobody asked for that: look at ledger.pending()",
                    cause="nobody asked for that",
                    code="nothing-asked",
                )
            last = until(ledger_time(book), policy.approval_days)
            number = self._desk.write(
                book, "approve", {"act": asked.act, "reason": short(reason, "reason"), "until": last}
            )
            book.put_fact("approval", name, asked.plus(Approval(by=self._desk.principal, number=number, until=last)))

    def declare(self, data: str, kind: str, text: str, *, recipients: str, reason: str) -> None:
        """Enter what leaves this data without differential privacy: a release "without DP", or an "invariant" that is
        published exactly. It costs nothing, and no guarantee covers it: reports list it beside what they promise."""
        checks.one_of(kind, "kind", DECLARED)
        for value, name in ((text, "text"), (recipients, "recipients"), (reason, "reason")):
            checks.label(value, name)
        checks.label(data, "data")
        with self._desk.writing() as book:
            policy = self._desk.policy(book, "declare")
            for part in address.read(data):
                data_set(book, part.name)
            act = Act(do=kind, on=data, what=record.digest({"text": text, "recipients": recipients}))
            needed = 0 if policy is None else policy.approvals(kind)
            approvals = self._desk.approved(book, policy, act, needed, f"a release of kind {kind!r}")
            self._desk.write(
                book,
                "declare",
                {
                    "data": data,
                    "of": kind,
                    "text": text,
                    "recipients": recipients,
                    "reason": reason,
                    "approvals": approvals,
                },
            )

    def unlock(self, account: str, reason: str) -> None:
        """An officer has looked at the failures and found them harmless."""
        checks.label(reason, "reason")
        with self._desk.writing() as book:
            self._desk.policy(book, "unlock")
            locked = found(book, account)
            self._desk.write(book, "unlock", {"account": account, "reason": short(reason, "reason")})
            book.put_account(replace(locked, failures=0))

    def accept_restore(self, reason: str, principals: tuple[str, ...]) -> None:
        """Go on from this copy of the ledger, though its anchor or its head saw another: two persons answer for it."""
        if not isinstance(self._desk.store, AnchoredStore | HeadedStore):
            raise LedgerError("this ledger has neither an anchor nor a head: there is nothing that it could be behind")
        checks.label(reason, "reason")
        checks.texts(principals, "principals")
        if (policy := self.policy()) is not None:
            if self._desk.principal not in principals:
                raise PolicyError("one of the two persons who answer for it must be the one who does it")
            for name in principals:
                if (refusal := policy.refusal(name, "restore")) is not None:
                    raise PolicyError(refusal)
        self._desk.store.accept_restore(reason, principals)
