"""The README is true: its example gives what its comment says, and its files exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_gives_the_numbers_it_names():
    code, _ = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    (line,) = [line for line in code.splitlines() if ".accuracy(" in line]
    expression, comment = line.split("#")
    finite, limit = map(float, re.findall(r"0\.\d+", comment))
    scope = {}
    exec(code, scope)
    assert float(eval(expression, scope)) == finite
    gp = scope["theory"].gp_limit(
        scope["xi"], scope["task"].train.y, heads=(2, 2), temperature=0.01
    )
    scope["solved"] = gp
    assert float(eval(expression, scope)) == limit


def test_the_example_of_a_model_runs():
    _, code = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    scope = {}
    exec(code, scope)
    assert list(scope["report"].heads().columns[:2]) == ["layer", "head"]
    assert len(scope["report"].heads()) == 8


def test_its_links_lead_somewhere():
    links = re.findall(r"\]\(([^)]+)\)", README)
    assert links
    for link in links:
        assert (ROOT / link).exists(), link


def test_its_commands_are_targets_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"make (\w+)", README)):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
