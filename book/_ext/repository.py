"""The address of the repository, which stands once: as `repository: url:` in ``_config.yml``.

With it, pages get the theme's buttons that launch them, show the repository and report a
problem, and links to source files. Without it they have none of these.
"""

from __future__ import annotations

from pathlib import Path

from book._ext.equations import ROOT

BUTTONS = ("use_repository_button", "use_issues_button", "use_source_button")


def choose_buttons(app, config) -> None:
    """Have the theme's buttons where there is a repository for them to lead to."""
    options = config.html_theme_options
    known = bool(options.get("repository_url"))
    options.update(dict.fromkeys(BUTTONS, known))
    if known:
        options.setdefault("repository_branch", "main")
    else:
        # the theme would fail to write the button's address
        options.pop("launch_buttons", None)


def link(config, text: str, path: Path, line: int | None = None) -> str:
    """Some text as a link to a source file in the repository, in Markdown; if none, as it is."""
    options = config.html_theme_options
    if not options.get("repository_url"):
        return text
    place = path.relative_to(ROOT).as_posix() + (f"#L{line}" if line else "")
    address = options["repository_url"].rstrip("/")
    return f"[{text}]({address}/blob/{options['repository_branch']}/{place})"
