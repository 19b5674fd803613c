"""The report as a person meets it: it opens, sorts, filters, hovers, copies and prints, all by itself."""

import json
from pathlib import Path

import pytest
from saved import CUBE, SQUARE, document
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from pullback.report.page import page

CONTRAST = Path(__file__).with_name("contrast.js")
SECONDS = 2.0  # of CPU, in which a page of 200 rules is there


def emulate(driver, **features):
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {
            "media": features.pop("media", ""),
            "features": [{"name": name.replace("_", "-"), "value": v} for name, v in features.items()],
        },
    )


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for name, count in (("page", 8), ("many", 200)):
        (folder / f"{name}.html").write_text(page(document(count))[0], encoding="utf-8")
    hostile = document(4)
    for rule in hostile["rules"]:
        rule["name"] = rule["docstring"] = rule["code"] = "</script><script>window.hit = 1</script>"
        for picture in rule["pictures"]:
            picture.update(input='"><script>window.hit = 1</script>', entry="<img src=x onerror='hit=1'>")
    (folder / "hostile.html").write_text(page(hostile)[0], encoding="utf-8")
    for theme, light in (("light", "true"), ("dark", "false")):
        shown = (
            f"<body data-jp-theme-light={light}><h1>Notebook</h1>{CUBE._repr_html_()}{SQUARE._repr_html_()}"
        )
        (folder / f"notebook-{theme}.html").write_text(f"<!doctype html>{shown}", encoding="utf-8")
    return folder


@pytest.fixture
def opened(chromium, files):
    """Open a page afresh, light, in a window of the usual size."""

    def opened(name="page", theme="light"):
        chromium.set_window_size(1280, 900)
        emulate(chromium, prefers_color_scheme=theme)
        chromium.get("about:blank")
        for kind in ("browser", "performance"):
            chromium.get_log(kind)
        chromium.get((files / f"{name}.html").as_uri())
        chromium.execute_script("localStorage.clear()")
        return chromium

    return opened


def all_of(driver, query):
    return driver.find_elements(By.CSS_SELECTOR, query)


def names(driver, query=".rules tbody tr:not([hidden]) td:first-child"):
    return [e.text for e in all_of(driver, query)]


def asked_of_the_network(driver):
    """List what a page asked for, but itself and what stands in it."""
    messages = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [url for url in sent if not url.startswith(("file:", "data:", "about:"))]


@pytest.mark.parametrize("name", ["page", "many", "hostile"])
def test_it_opens_without_an_error_or_a_request(opened, name):
    driver = opened(name)
    assert len(all_of(driver, ".rule")) == len(all_of(driver, ".rules tbody tr")) > 0
    assert driver.get_log("browser") == []
    assert asked_of_the_network(driver) == []


def test_text_of_a_user_is_shown_and_not_run(opened):
    driver = opened("hostile")
    assert names(driver)[0] == "</script><script>window.hit = 1</script>"
    assert driver.execute_script("return window.hit") is None


def test_two_hundred_rules_are_there_in_two_seconds(chromium, opened):
    opened()
    chromium.execute_cdp_cmd("Performance.disable", {})
    chromium.execute_cdp_cmd(
        "Performance.enable", {"timeDomain": "threadTicks"}
    )  # of the CPU, not of a clock

    def used():
        found = chromium.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
        return next(m["value"] for m in found if m["name"] == "TaskDuration")

    before = used()
    opened("many")
    spent = used() - before
    print(f"{spent:.2f} s of CPU")
    assert 0 < spent < SECONDS
    chromium.execute_cdp_cmd("Performance.disable", {})


def test_columns_sort_by_their_buttons_up_and_down(opened):
    driver = opened()
    first = names(driver)
    assert first[0] == "cube"  # what is wrong comes first
    rule, verdict, _, resolution = all_of(driver, ".rules th button")[:4]
    rule.click()
    assert names(driver) == sorted(first)
    rule.click()
    assert names(driver) == sorted(first, reverse=True)
    assert [h.get_attribute("aria-sort") for h in all_of(driver, ".rules th")][:2] == ["descending", "none"]
    resolution.send_keys(Keys.ENTER)  # by the keyboard
    assert names(driver)[0].startswith("softplus")
    verdict.click()
    assert names(driver)[:4] == [n for n in names(driver) if n.startswith(("cube", "square"))]


def test_the_filter_hides_rows_and_cards(opened):
    driver = opened()
    ActionChains(driver).send_keys("/").perform()
    field = driver.switch_to.active_element
    assert field.get_attribute("id") == "filter"
    field.send_keys("soft right")
    assert names(driver) == ["softplus", "softplus_5"]
    assert len([c for c in all_of(driver, ".rule") if c.is_displayed()]) == 2
    field.send_keys(" nobody")
    assert names(driver) == []
    assert driver.find_element(By.CSS_SELECTOR, ".none").is_displayed()
    field.send_keys(Keys.ESCAPE)
    assert len(names(driver)) == 8


def test_a_verdict_filters_too(opened):
    driver = opened()
    wrong = driver.find_element(By.CSS_SELECTOR, ".tally.wrong")
    wrong.click()
    assert sorted(names(driver)) == ["cube", "cube_4", "square", "square_7"]
    assert wrong.get_attribute("aria-pressed") == "true"
    wrong.click()
    assert len(names(driver)) == 8


def test_a_row_leads_to_its_card_and_opens_it(opened):
    driver = opened()
    card = next(c for c in all_of(driver, ".rule") if "softplus" in c.text)
    assert not card.get_attribute("open")
    driver.find_element(By.LINK_TEXT, "softplus").click()
    assert card.get_attribute("open")
    assert 0 <= driver.execute_script("return arguments[0].getBoundingClientRect().top", card) < 400


def test_hovering_over_a_point_says_its_index_and_values(opened):
    driver = opened()
    dot = all_of(driver, ".scatter circle")[0]
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", dot)
    assert dot.value_of_css_property("stroke") == "none"
    ActionChains(driver).move_to_element(dot).perform()
    (under,) = all_of(driver, ".scatter circle:hover")
    title = under.find_element(By.TAG_NAME, "title").get_attribute("textContent")
    assert [line.split()[0] for line in title.splitlines()] == ["x[0,", "claimed", "measured"]
    assert under.value_of_css_property("stroke") != "none"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_can_be_read(opened, theme):
    driver = opened(theme=theme)
    shade = driver.execute_script("return getComputedStyle(document.documentElement).backgroundColor")
    bright = sum(map(int, shade.removeprefix("rgb(").removesuffix(")").split(","))) / 3
    assert (bright > 200) if theme == "light" else (bright < 60)
    assert driver.execute_script(CONTRAST.read_text(encoding="utf-8")) == []


def test_the_theme_is_switched_by_a_button_and_kept(opened):
    driver = opened()
    button = driver.find_element(By.CSS_SELECTOR, ".theme")
    assert button.text == "Dark"
    before = driver.find_element(By.TAG_NAME, "html").value_of_css_property("background-color")
    button.click()
    assert button.text == "Light"
    driver.refresh()
    html = driver.find_element(By.TAG_NAME, "html")
    assert html.get_attribute("data-theme") == "dark"
    assert html.value_of_css_property("background-color") != before


def test_code_and_patches_are_copied(opened):
    driver = opened()
    driver.execute_script(
        "window.taken = []; navigator.clipboard.writeText = async (text) => { taken.push(text); }"
    )
    card = all_of(driver, ".rule")[0]
    for button in card.find_elements(By.CSS_SELECTOR, ".copy"):
        button.click()
        assert button.text == "Copied"
    taken = driver.execute_script("return window.taken")
    sentence, patch, smallest, code, source = taken
    assert sentence == "the gradient of x is 2 times the derivative, everywhere"
    assert patch.startswith("--- a/train.py\n+++ b/train.py\n")
    assert patch.endswith("\n-    return (3 * x * dy,)\n+    return (3 * x**2 * dy,)\n"), "git needs its end"
    assert smallest == "x = [1.2]"
    assert code == "x0 = tf.constant([1.0])\n# seed 7"
    assert source.startswith("@jax.custom_vjp\ndef cube(x):")


def test_it_is_readable_without_scripts(opened, chromium):
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        driver = opened()
        assert not [e for e in all_of(driver, ".scripted") if e.is_displayed()]
        assert all_of(driver, ".rule")[0].find_element(By.CSS_SELECTOR, "svg").is_displayed()
        card = next(c for c in all_of(driver, ".rule") if not c.get_attribute("open"))
        card.find_element(By.TAG_NAME, "summary").send_keys(Keys.ENTER)
        assert card.find_element(By.CSS_SELECTOR, ".facts").is_displayed()
    finally:
        chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_print_shows_what_is_folded(opened):
    driver = opened()
    card = next(c for c in all_of(driver, ".rule") if not c.get_attribute("open"))
    facts = card.find_element(By.CSS_SELECTOR, ".facts")
    assert not facts.is_displayed()
    emulate(driver, media="print")
    assert facts.size["height"] > 40
    assert not [e for e in all_of(driver, ".copy, .theme, .filter") if e.is_displayed()]
    emulate(driver)


@pytest.mark.parametrize("width", [500, 800, 1280])
def test_nothing_is_wider_than_the_window(opened, width):
    driver = opened()
    driver.set_window_size(width, 900)
    assert driver.execute_script("return document.documentElement.scrollWidth - innerWidth") <= 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_notebook_has_its_own_theme_and_keeps_its_own_style(opened, theme):
    driver = opened(f"notebook-{theme}", "dark" if theme == "light" else "light")
    assert driver.get_log("browser") == []
    assert driver.find_element(By.CSS_SELECTOR, ".pb").value_of_css_property("color-scheme") == theme
    assert driver.find_element(By.TAG_NAME, "h1").value_of_css_property("font-size") == "32px"
    assert len([e for e in all_of(driver, "svg") if e.is_displayed()]) == 6
    assert not [e for e in all_of(driver, ".copy") if e.is_displayed()]
    headings = all_of(driver, ".rule h3")
    colours = {heading.value_of_css_property("color") for heading in headings}
    (bright,) = {sum(map(int, c[c.index("(") + 1 : -1].split(",")[:3])) > 380 for c in colours}
    assert bright is (theme == "dark")
