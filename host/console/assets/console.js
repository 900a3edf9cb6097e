// Keeps the live parts of a page up to date. Everything is drawn by the server; without this script a page is as it was
// when it was opened.
"use strict";

(() => {
  const main = document.querySelector("main[data-live]");
  const sleeping = () => document.visibilityState === "hidden";
  let source = null;

  const replace = (part) => {
    const place = document.getElementById(part.id);
    // Whoever is just using something in there keeps it.
    if (!place || place.contains(document.activeElement)) return;
    const open = [...place.querySelectorAll("details[open][id]")].map((one) => one.id);
    place.innerHTML = part.html;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  };

  const begin = () => {
    if (source || sleeping()) return;
    source = new EventSource(main.dataset.live);
    source.onmessage = (event) => {
      for (const part of JSON.parse(event.data)) replace(part);
      main.removeAttribute("data-stale");
    };
    source.addEventListener("gone", () => { source.close(); location.reload(); });
    source.onerror = () => main.setAttribute("data-stale", "");
  };

  const end = () => {
    source?.close();
    source = null;
  };

  if (main && window.EventSource) {
    document.addEventListener("visibilitychange", () => (sleeping() ? end() : begin()));
    addEventListener("pagehide", end);
    addEventListener("pageshow", begin);
    begin();
  }

  // A form is sent once.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.sent) { event.preventDefault(); return; }
    const question = event.submitter?.dataset.ask;
    if (question && !confirm(question)) { event.preventDefault(); return; }
    form.dataset.sent = "yes";
    setTimeout(() => delete form.dataset.sent, 4000);
  });

  // A search that was not through when the page was sent goes on until there is a page full, or nothing more.
  const searchOn = async () => {
    const found = document.getElementById("found");
    const place = () => document.querySelector("[data-search-on]");
    const rows = (from) => [...from.querySelectorAll("#found tbody tr")];
    while (found && place() && !sleeping() && rows(document).length < 50) {
      const answer = await fetch(place().querySelector("a").href);
      // The session has ended: this page leads to the login, and back.
      if (answer.redirected) { location.reload(); return; }
      if (!answer.ok) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const more = rows(page);
      if (rows(document).length === 0) {
        found.replaceChildren(...page.getElementById("found").childNodes);
      } else {
        found.querySelector("tbody").append(...more);
      }
      const next = page.querySelector("p.more");
      if (next) place().replaceWith(next);
      else place().remove();
    }
  };
  searchOn();

  document.getElementById("theme")?.addEventListener("change", (event) => event.target.form.requestSubmit());
})();
