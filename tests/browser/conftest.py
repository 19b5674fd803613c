"""The page in a real browser: Chromium without a window, driven as a person would."""

import os
import sys
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

sys.path[:0] = [os.path.dirname(__file__), str(Path(__file__).parents[1] / "unit" / "report")]


def started(*, width=1280, height=900):
    """Start Chromium; it keeps what pages log and ask the network for."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "hide-scrollbars"):
        options.add_argument(f"--{argument}")
    options.add_argument(f"--window-size={width},{height}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


@pytest.fixture(scope="session")
def chromium():
    driver = started()
    yield driver
    driver.quit()
