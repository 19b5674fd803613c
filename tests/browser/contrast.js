// Lists the texts of a page that stand out too little from what is behind them.
const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const light = ([r, g, b]) => 0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
const behind = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const colour = numbers(getComputedStyle(e).backgroundColor);
    if (colour.length < 4 || colour[3] > 0.5) return colour;
  }
  return [255, 255, 255];
};
const texts = "h1, h2, h3, h4, p, td, dt, dd, .badge, .tally b, .tally span, pre, figcaption, th, a, li";
return [...document.querySelectorAll(texts)]
  .filter((e) => e.textContent.trim() && e.checkVisibility())
  .map((e) => {
    const [a, b] = [light(numbers(getComputedStyle(e).color)), light(behind(e))].sort((x, y) => y - x);
    return [(a + 0.05) / (b + 0.05), e.outerHTML.slice(0, 60)];
  })
  .filter(([ratio]) => ratio < 4.5);
