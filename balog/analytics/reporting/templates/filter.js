// Shows the rows that match the search and the filters, and keeps them in the URL's hash: #q=timeout&outcome=failed
(() => {
  "use strict";
  function reveal(target) {
    for (let part = target; part; part = part.parentElement) {
      part.hidden = false;
      if (part.localName === "details") part.open = true;
    }
    target.scrollIntoView();
  }

  if (location.protocol === "about:") {  // in a frame of a notebook, a link to a section would load the notebook
    document.addEventListener("click", event => {
      const link = event.target.closest("a[href^='#']");
      const target = link && document.getElementById(decodeURIComponent(link.getAttribute("href").slice(1)));
      if (link) event.preventDefault();
      if (target) reveal(target);
    });
  }

  const bar = document.getElementById("filter");
  if (!bar) return;
  const fields = Object.fromEntries([...bar.querySelectorAll("[name]")].map(field => [field.name, field]));
  const clear = bar.querySelector("button"), matches = bar.querySelector("output");
  const groups = new Map();
  for (const element of document.querySelectorAll("[data-key], #report .plain tbody tr")) {
    const key = element.dataset.key || element;
    const group = groups.get(key) || { elements: [], text: "" };
    group.kind ||= element.dataset.kind;
    group.elements.push(element);
    group.text += " " + element.textContent.replace(/\s+/g, " ").toLowerCase();
    for (const name of ["pipeline", "stream", "outcome"]) {
      if (name in element.dataset) group[name] = element.dataset[name].split(" ");
    }
    groups.set(key, group);
  }

  const fits = (group, words) => words.every(word => group.text.includes(word))
    && ["pipeline", "stream", "outcome"].every(name => {
      const field = fields[name];
      if (!field || !field.value || !group[name]) return true;
      return group[name].includes(name === "outcome" ? field.value : String(field.selectedIndex - 1));
    });

  function apply() {
    const words = fields.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    const counts = {};
    for (const group of groups.values()) {
      const shown = fits(group, words);
      for (const element of group.elements) element.hidden = !shown;
      if (group.kind) {
        const count = counts[group.kind] = counts[group.kind] || [0, 0];
        count[0] += shown;
        count[1] += 1;
      }
    }
    const active = Object.values(fields).some(field => field.value);
    clear.hidden = !active;
    matches.textContent = active
      ? Object.entries(counts).map(([kind, [some, all]]) => `${some} of ${all} ${kind}`).join(", ") : "";
  }

  function write() {
    const chosen = new URLSearchParams();
    for (const [name, field] of Object.entries(fields)) if (field.value) chosen.set(name, field.value);
    try { history.replaceState(null, "", "#" + chosen); } catch { /* a frame in a notebook has no address */ }
    apply();
  }

  function read() {
    const hash = location.hash.slice(1);
    let target = null;
    try { target = document.getElementById(decodeURIComponent(hash)); } catch { /* not an anchor */ }
    const chosen = new URLSearchParams(hash);
    if (!target) {
      for (const [name, field] of Object.entries(fields)) {
        field.value = chosen.get(name) || "";
        if (field.selectedIndex < 0) field.selectedIndex = 0;
      }
    }
    apply();
    if (target) reveal(target);
  }

  for (const field of Object.values(fields)) field.addEventListener("input", write);
  clear.addEventListener("click", () => {
    for (const field of Object.values(fields)) field.value = "";
    write();
    fields.q.focus();
  });
  addEventListener("hashchange", read);
  document.documentElement.classList.add("filtered");
  bar.hidden = false;
  read();
})();
