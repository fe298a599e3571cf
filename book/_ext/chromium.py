"""A headless Chromium, which prints the book and, in tests, looks at its pages."""

from __future__ import annotations

import shutil
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def programs() -> tuple[str, str] | None:
    """Where Chromium and its driver are; None if one of them is missing."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    return (chromium, driver) if chromium and driver else None


def start(profile: Path) -> webdriver.Chrome:
    """Start Chromium with an empty profile in this folder; all that it asks for is logged."""
    found = programs()
    if found is None:
        raise FileNotFoundError(
            "chromium and chromedriver are wanted, and not both were found; install them "
            "(Debian: chromium and chromium-driver)"
        )
    options = webdriver.ChromeOptions()
    options.binary_location = found[0]
    for flag in [*FLAGS, f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"performance": "ALL", "browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(found[1]))
    driver.set_script_timeout(300)
    return driver
