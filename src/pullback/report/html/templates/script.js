(() => {
  "use strict";
  const root = document.documentElement, all = (query, from = document) => [...from.querySelectorAll(query)];
  const kept = {
    get: () => { try { return localStorage.getItem("pullback-theme"); } catch { return null; } },
    set: (theme) => { try { localStorage.setItem("pullback-theme", theme); } catch { /* not allowed here */ } },
  };
  root.classList.add("js");

  const button = document.querySelector(".theme");
  const dark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const name = () => { button.textContent = dark() ? "Light" : "Dark"; };
  if (kept.get()) root.dataset.theme = kept.get();
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; kept.set(root.dataset.theme); name(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", name);
  name();

  const copied = async (text) => {
    try { await navigator.clipboard.writeText(text); return; } catch { /* the older way */ }
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  };
  document.addEventListener("click", async (event) => {
    const copy = event.target.closest(".copy");
    if (!copy) return;
    const from = copy.parentElement.querySelector("h3") || copy.parentElement.querySelector("pre");
    // A diff may end in a line that is one space.
    await copied(from.matches(".diff") ? from.textContent : from.textContent.trimEnd());
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy"; }, 1500);
  });

  const reveal = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const rule = target.closest("details");
    if (rule) { rule.open = true; rule.scrollIntoView(); }
  };
  addEventListener("hashchange", reveal);
  reveal();
  let closed = [];
  addEventListener("beforeprint", () => { closed = all("details:not([open])"); closed.forEach((d) => { d.open = true; }); });
  addEventListener("afterprint", () => closed.forEach((d) => { d.open = false; }));

  const table = document.querySelector(".rules");
  if (!table) return;
  const body = table.tBodies[0], field = document.getElementById("filter"), none = document.querySelector(".none");
  const rows = [...body.rows].map((row) => ({ row, text: row.textContent.toLowerCase(), card: document.querySelector(`.rule[data-rule="${row.dataset.rule}"]`) }));
  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const pressed = all('.tally[aria-pressed="true"]').map((tally) => tally.dataset.word);
    let shown = 0;
    for (const { row, text, card } of rows) {
      const fits = words.every((word) => text.includes(word)) && pressed.every((word) => word === row.dataset.word);
      row.hidden = card.hidden = !fits;
      shown += fits;
    }
    none.hidden = shown > 0;
  };
  field.addEventListener("input", filter);
  all(".tally").forEach((tally) => tally.addEventListener("click", () => {
    const on = tally.getAttribute("aria-pressed") !== "true";
    all(".tally").forEach((other) => other.setAttribute("aria-pressed", String(on && other === tally)));
    filter();
  }));
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) { event.preventDefault(); field.focus(); }
    if (event.key === "Escape" && document.activeElement === field) { field.value = ""; filter(); field.blur(); }
  });

  const value = (row, i) => row.cells[i].dataset.value ?? row.cells[i].textContent.trim();
  const order = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" });
  [...table.tHead.rows[0].cells].forEach((head, i) => head.firstElementChild.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    [...table.tHead.rows[0].cells].forEach((other) => other.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const numeric = rows.length > 0 && "value" in rows[0].row.cells[i].dataset;
    rows.sort((a, b) => (numeric ? value(a.row, i) - value(b.row, i) : order.compare(value(a.row, i), value(b.row, i))) * (down ? -1 : 1));
    body.append(...rows.map(({ row }) => row));
  }));
})();
