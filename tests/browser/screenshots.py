"""Take the pictures of the documentation anew: `python tests/browser/screenshots.py`. They are looked at."""

import subprocess
import sys
import tempfile
from pathlib import Path

from conftest import started
from selenium.webdriver.common.by import By

HERE = Path(__file__).parent
IMAGES = HERE.parents[1] / "docs" / "images"


def taken(driver, name, element=None, *, theme="light", height=900):
    """Save what is seen from an element on."""
    driver.set_window_size(1240, height)
    driver.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
    top = 0 if element is None else element.location["y"] - 24
    driver.execute_script("scrollTo(0, arguments[0])", top)
    driver.save_screenshot(str(IMAGES / f"{name}.png"))


def main():
    """Check the program, and look at its page."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.html"
        command = [
            sys.executable,
            "-m",
            "pullback",
            "check",
            "program.py",
            "--seed",
            "1",
            "--html",
            str(path),
        ]
        subprocess.run(command, cwd=HERE, check=False, stdout=subprocess.DEVNULL)
        driver = started()
        driver.get(path.as_uri())
        cards = driver.find_elements(By.CSS_SELECTOR, ".rule")
        taken(driver, "report", height=1010)
        taken(driver, "report-dark", cards[0], theme="dark", height=1330)
        for theme in ("light", "dark"):  # the front page, and the README
            taken(driver, f"wrong-{theme}", cards[0], theme=theme, height=880)
        taken(driver, "report-second-order", cards[1], height=1330)
        right = next(card for card in cards if not card.get_attribute("open"))
        right.find_element(By.TAG_NAME, "summary").click()
        taken(driver, "report-stability", right, height=1130)
        driver.quit()


if __name__ == "__main__":
    main()
