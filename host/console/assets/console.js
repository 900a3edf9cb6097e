// Updates the live regions of a page. The server renders everything; without this script a page stays as it was loaded.
"use strict";

(() => {
  const main = document.querySelector("main[data-live]");
  const isHidden = () => document.visibilityState === "hidden";
  let source = null;

  const replace = (part) => {
    const region = document.getElementById(part.id);
    // A region with the focus is not replaced.
    if (!region || region.contains(document.activeElement)) return;
    const open = [...region.querySelectorAll("details[open][id]")].map((one) => one.id);
    region.innerHTML = part.html;
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
  };

  const connect = () => {
    if (source || isHidden()) return;
    source = new EventSource(main.dataset.live);
    source.onmessage = (event) => {
      for (const part of JSON.parse(event.data)) replace(part);
      main.removeAttribute("data-stale");
    };
    source.addEventListener("reload", () => { source.close(); location.reload(); });
    source.onerror = () => main.setAttribute("data-stale", "");
  };

  const disconnect = () => {
    source?.close();
    source = null;
  };

  if (main && window.EventSource) {
    document.addEventListener("visibilitychange", () => (isHidden() ? disconnect() : connect()));
    addEventListener("pagehide", disconnect);
    addEventListener("pageshow", connect);
    connect();
  }

  // A form is submitted only once.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.dataset.sent) { event.preventDefault(); return; }
    const question = event.submitter?.dataset.confirm;
    if (question && !confirm(question)) { event.preventDefault(); return; }
    form.dataset.sent = "yes";
    setTimeout(() => delete form.dataset.sent, 4000);
  });

  // Continues an unfinished search until the page is full or the search ends.
  const continueSearch = async () => {
    const found = document.getElementById("found");
    const link = () => document.querySelector("[data-search-on]");
    const rows = (from) => [...from.querySelectorAll("#found tbody tr")];
    while (found && link() && !isHidden() && rows(document).length < 50) {
      const answer = await fetch(link().querySelector("a").href);
      // The session ended: a reload redirects to the login.
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
      if (next) link().replaceWith(next);
      else link().remove();
    }
  };
  continueSearch();

  document.getElementById("theme")?.addEventListener("change", (event) => event.target.form.requestSubmit());
})();
