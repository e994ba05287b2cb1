"""A browser without a window; tests that want one are skipped where there is none, and fail there
if EDGEWISE_BROWSER=required, as CI has it on Linux."""

import contextlib
import os
import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextlib.contextmanager
def browser(profile):
    """Chromium with a profile of its own, and its console kept for `complaints`."""
    webdriver = pytest.importorskip("selenium.webdriver")
    from selenium.webdriver.chrome.service import Service

    chromium = next(filter(None, map(shutil.which, NAMES)), None)
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        without = pytest.fail if os.environ.get("EDGEWISE_BROWSER") == "required" else pytest.skip
        without("needs a browser: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    window = webdriver.Chrome(options=options, service=Service(driver))
    window.set_page_load_timeout(60)
    try:
        yield window
    finally:
        window.quit()


def resize(window, width, height):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    window.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def complaints(window):
    """Errors in the console since this was last asked."""
    return [entry for entry in window.get_log("browser") if entry["level"] == "SEVERE"]
