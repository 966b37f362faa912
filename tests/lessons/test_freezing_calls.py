"""Does the lesson on killed processes become a bundle that says beforehand what must come of it?

Not here: freezing it with processes that are really killed (`tests/real/test_working_state.py`).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from codeai_lab.cli import cli
from codeai_lab.errors import BundleError, RefusedRequestError
from codeai_lab.lessons.freezing_calls import freeze_working_state, protocol


def test_the_plan_names_every_call_and_how_often_the_provider_is_asked() -> None:
    """FC2: written by hand, from the table of the published run."""
    plans = {plan["case"]: plan for plan in protocol()["cases"]}
    calls = {
        name: [asked["id"].removeprefix(f"{name}-") for asked in plan["requests"]]
        for name, plan in plans.items()
    }
    expected = {
        name: (plan["expected"]["statuses"], plan["expected"]["effects_world"])
        for name, plan in plans.items()
    }

    assert calls == {
        "clean-complete": ["call"],
        "compilation-failed": [],
        "killed-during-compilation": [],
        "killed-after-manifest": ["call", "call-resumed"],
        "killed-after-manifest-drift": ["call"],
        "killed-during-effect": ["call"],
        "killed-during-effect-naive-restart": ["call", "call-again"],
        "killed-after-observation": ["call"],
    }
    assert expected == {
        "clean-complete": (["succeeded"], 1),
        "compilation-failed": ([], 0),
        "killed-during-compilation": ([], 0),
        "killed-after-manifest": ([None, "succeeded"], 1),
        "killed-after-manifest-drift": ([None], 0),
        "killed-during-effect": ([None], 1),
        "killed-during-effect-naive-restart": ([None, "succeeded"], 2),
        "killed-after-observation": (["succeeded"], 1),
    }


def test_there_is_one_rule_set_to_freeze_it_under(tmp_path: Path) -> None:
    """Another one is refused in a sentence that says what to do, and nothing is made."""
    to = ["--to", str(tmp_path / "bundle")]
    run = CliRunner().invoke(cli, ["freeze", "working-state", *to, "--revision", "88d1291"])

    assert isinstance(run.exception, RefusedRequestError)
    assert "leave the rules out, or name one of: lab" in str(run.exception)
    assert not (tmp_path / "bundle").exists()


def test_a_folder_in_use_is_left_alone(tmp_path: Path, played_before: None) -> None:
    """B1: what is there is not written over."""
    (tmp_path / "mine.txt").touch()
    with pytest.raises(BundleError, match="not empty"):
        freeze_working_state(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
