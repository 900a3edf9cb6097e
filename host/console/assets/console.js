// Updates the live regions of a page. The server renders everything; without this script a page stays as it was loaded.
"use strict";

(() => {
  // Times: the server renders UTC; the viewer chooses between it and their own zone.
  const ownZone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "local";
  const shows = (zone) => (localStorage.getItem("times") ?? "local") === zone;
  const pad = (number) => String(number).padStart(2, "0");

  const showTimes = (root) => {
    for (const time of root.querySelectorAll("time[datetime]")) {
      const text = time.firstChild;
      const at = new Date(time.dateTime);
      if (!text || isNaN(at)) continue;
      time.dataset.utc ??= text.data;
      time.title = time.dateTime.replace("T", " ").replace(/(\.\d+)?Z$/, "") + " UTC";
      if (shows("utc")) { text.data = time.dataset.utc; continue; }
      const day = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
      const clock = `${pad(at.getHours())}:${pad(at.getMinutes())}`;
      // An axis shows a part of the time.
      const parts = { day, clock };
      text.data = parts[time.dataset.part] ?? `${day} ${clock}:${pad(at.getSeconds())}`;
    }
  };

  const zone = document.getElementById("zone");
  const showZone = () => {
    showTimes(document);
    if (!zone || ["UTC", "Etc/UTC"].includes(ownZone)) return;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "quiet";
    button.textContent = shows("utc") ? "Show local times" : "Show UTC";
    button.addEventListener("click", () => {
      localStorage.setItem("times", shows("utc") ? "local" : "utc");
      showZone();
      zone.querySelector("button").focus();
    });
    zone.replaceChildren(shows("utc") ? "All times are UTC. " : `Times: ${ownZone}. `, button);
  };
  showZone();

  const main = document.querySelector("main[data-live]");
  const isHidden = () => document.visibilityState === "hidden";
  let source = null;

  const replace = (part) => {
    const region = document.getElementById(part.id);
    // A region with the focus is not replaced.
    if (!region || region.contains(document.activeElement)) return;
    const open = [...region.querySelectorAll("details[open][id]")].map((one) => one.id);
    region.innerHTML = part.html;
    showTimes(region);
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

  // Times that run out, such as that for a confirmation.
  // One that has run out already does not reload the page again and again, such as with a clock that is ahead of the appliance's.
  const clocks = [...document.querySelectorAll("[data-until]")].filter((one) => Number(one.dataset.until) > Date.now());
  const tick = () => {
    for (const clock of clocks) {
      const left = Math.max(0, Number(clock.dataset.until) - Date.now());
      if (left === 0) { location.reload(); clearInterval(ticking); return; }
      const seconds = Math.ceil(left / 1000);
      if (clock.tagName === "PROGRESS") clock.value = left;
      else clock.textContent = `in ${Math.floor(seconds / 60)}:${pad(seconds % 60)}`;
    }
  };
  const ticking = clocks.length > 0 ? setInterval(tick, 1000) : 0;
  if (ticking) tick();

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
      showTimes(found);
      const next = page.querySelector("p.more");
      if (next) link().replaceWith(next);
      else link().remove();
    }
  };
  continueSearch();

  // Searches for messages that this browser keeps.
  const saved = document.getElementById("saved-searches");
  const searches = () => JSON.parse(localStorage.getItem("searches") ?? "[]");
  const keep = (all) => { localStorage.setItem("searches", JSON.stringify(all)); showSearches(); };
  const button = (label, action) => {
    const made = document.createElement("button");
    made.type = "button";
    made.className = "quiet";
    made.textContent = label;
    made.addEventListener("click", action);
    return made;
  };

  const showSearches = () => {
    const here = new URLSearchParams(location.search);
    ["cursor", "live", "id"].forEach((name) => here.delete(name));
    [...here].filter(([, value]) => !value).forEach(([name]) => here.delete(name));
    const query = here.toString();
    const all = searches();
    const known = all.some((one) => one.query === query);
    const parts = all.map((one) => {
      const link = document.createElement("a");
      link.href = "/messages?" + one.query;
      link.textContent = one.name;
      if (one.query === query) link.setAttribute("aria-current", "true");
      return link;
    });
    if (query && !known) {
      const name = [...here.values()].join(", ").slice(0, 60);
      parts.push(button("Save this search", () => keep([...searches(), { name, query }].slice(-20))));
    } else if (known) {
      parts.push(button("Remove this search", () => keep(searches().filter((one) => one.query !== query))));
    }
    saved.replaceChildren(...parts);
  };
  if (saved) showSearches();

  // The search field in the header: suggestions while typing, chosen with the arrow keys.
  const field = document.getElementById("find");
  const list = document.getElementById("suggestions");
  let chosen = -1;
  let asked = 0;

  const choose = (index) => {
    const options = [...list.children];
    chosen = options.length ? (index + options.length) % options.length : -1;
    options.forEach((option, at) => option.setAttribute("aria-selected", String(at === chosen)));
    options[chosen]?.scrollIntoView({ block: "nearest" });
    if (chosen < 0) field.removeAttribute("aria-activedescendant");
    else field.setAttribute("aria-activedescendant", options[chosen].id);
  };

  const show = (options) => {
    list.replaceChildren(...options);
    list.hidden = options.length === 0;
    field.setAttribute("aria-expanded", String(!list.hidden));
    choose(options.length ? 0 : -1);
    if (list.hidden) field.removeAttribute("aria-activedescendant");
  };

  const suggest = async () => {
    const query = field.value.trim();
    const turn = ++asked;
    if (!query) { show([]); return; }
    const answer = await fetch("/search?q=" + encodeURIComponent(query)).catch(() => null);
    // A later query was sent, or the session ended.
    if (turn !== asked || !answer?.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const option = (result, index) => {
      const item = document.createElement("li");
      const link = result.querySelector("a");
      item.id = "suggestion-" + index;
      item.setAttribute("role", "option");
      item.dataset.path = link.getAttribute("href");
      const kind = document.createElement("span");
      kind.className = "kind";
      kind.textContent = result.closest("section").querySelector("h2").textContent;
      const note = document.createElement("small");
      note.textContent = result.querySelector(".muted")?.textContent ?? "";
      item.append(kind, link.textContent, note);
      return item;
    };
    if (document.activeElement === field) show([...page.querySelectorAll(".results li")].slice(0, 12).map(option));
  };

  if (field && list) {
    field.setAttribute("role", "combobox");
    field.setAttribute("aria-controls", "suggestions");
    field.setAttribute("aria-expanded", "false");
    field.setAttribute("aria-autocomplete", "list");
    let waiting = 0;
    field.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(suggest, 150); });
    field.addEventListener("blur", () => { asked += 1; show([]); });
    field.addEventListener("keydown", (event) => {
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        if (list.hidden) return;
        event.preventDefault();
        choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
      } else if (event.key === "Enter" && !list.hidden && chosen >= 0) {
        event.preventDefault();
        location.href = list.children[chosen].dataset.path;
      } else if (event.key === "Escape") {
        if (list.hidden) field.blur();
        show([]);
      }
    });
    // The field loses the focus before a click.
    list.addEventListener("mousedown", (event) => {
      const path = event.target.closest("li")?.dataset.path;
      if (path) { event.preventDefault(); location.href = path; }
    });
  }

  const pages = { o: "/", m: "/messages", q: "/queues", p: "/peers", a: "/accounts", c: "/configuration" };
  let goes = 0;
  document.addEventListener("keydown", (event) => {
    const types = event.target.closest("input, select, textarea, [contenteditable]");
    if (types || event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.key === "/" && field) {
      event.preventDefault();
      field.select();
    } else if (event.key === "?") {
      document.getElementById("keys")?.showModal();
    } else if (event.key === "g") {
      goes = event.timeStamp;
    } else if (pages[event.key] && event.timeStamp - goes < 1000) {
      location.href = pages[event.key];
    }
  });

  document.getElementById("theme")?.addEventListener("change", (event) => event.target.form.requestSubmit());
})();
