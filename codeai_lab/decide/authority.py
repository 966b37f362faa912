"""May this be asked now?

Chapter: 004, "What CodeAI does", authority first: ability to replay an old record is not authority to request
the operation now.

Idea: authority is what the caller holds at this moment, a few grants. It is judged before anything recorded
is looked at for the caller, and again before every attempt at an effect. An empty authority permits nothing.

Always true:
  A1. No grant, no permission: the default refuses.
  A2. A grant that has expired permits nothing from its very instant on.
  A3. The judgement depends on the request and the authority alone, never on what is recorded.

Not here: what a denied caller is told (`run.stages.require_authority`).
"""

from __future__ import annotations

from dataclasses import dataclass

from codeai_lab.errors import NotPermittedError


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """Permission for one capability, by one performer or any (None), until an instant or for good (None)."""

    capability: str
    performer: str | None = None
    expires_at_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Authority:
    """What a caller holds: grants, in no particular order.

    Example:
        >>> Authority.of("file.append").grants[0].capability
        'file.append'
    """

    grants: tuple[Grant, ...] = ()

    @classmethod
    def of(cls, *capabilities: str) -> Authority:
        """Give an authority that permits these capabilities to anyone, without end."""
        return cls(grants=tuple(Grant(capability=capability) for capability in capabilities))


NO_AUTHORITY = Authority()


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """A judgement: allowed or not, and the rule that decided."""

    allowed: bool
    reason: str


class PolicyEngine:
    """Judges one capability against the grants that the caller supplies now."""

    def judge(self, capability: str, authority: Authority, *, performer: str, now_us: int) -> Permission:
        """Say whether a grant covers the capability for this performer at this instant."""
        named = [grant for grant in authority.grants if grant.capability == capability]
        if not named:
            return Permission(allowed=False, reason="no grant names this capability")
        own = [grant for grant in named if grant.performer in (None, performer)]
        if not own:
            return Permission(allowed=False, reason="the grant is for another performer")
        if all(grant.expires_at_us is not None and now_us >= grant.expires_at_us for grant in own):
            return Permission(allowed=False, reason="the grant has expired")
        return Permission(allowed=True, reason="granted")

    def require(self, capability: str, authority: Authority, *, performer: str, now_us: int) -> None:
        """Return if it is permitted.

        Raises: NotPermittedError (definite), with the reason.
        """
        permission = self.judge(capability, authority, performer=performer, now_us=now_us)
        if not permission.allowed:
            raise NotPermittedError(permission.reason)
