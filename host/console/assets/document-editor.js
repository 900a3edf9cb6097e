// Completes the document in the form, a policy or the configuration, from its schema and the appliance's names, and underlines errors.
// Without this script, the document is a plain text, which the server checks when the form is sent.
"use strict";

(() => {
  const area = document.querySelector("textarea[data-check], textarea[data-form-check]");
  if (!area || area.readOnly) return;

  const load = async (path) => {
    const answer = await fetch(path);
    return answer.ok ? answer.json() : null;
  };

  // ---- The schema.

  let root = null;
  if (area.dataset.schema) load(area.dataset.schema).then((schema) => { root = schema; area.dataset.ready = ""; });

  // The schema itself and its alternatives; those of an array's items too, since a name and a list of names complete alike.
  const alternatives = (schema, depth = 0) => {
    if (!schema || typeof schema !== "object" || depth > 20) return [];
    if (typeof schema.$ref === "string" && schema.$ref.startsWith("#/")) {
      const target = schema.$ref.slice(2).split("/").reduce((at, part) => at?.[part], root);
      return alternatives(target, depth + 1);
    }
    const below = [...(schema.anyOf ?? []), ...(schema.oneOf ?? []), ...(schema.allOf ?? [])];
    if (schema.items) below.push(schema.items);
    return [schema, ...below.flatMap((one) => alternatives(one, depth + 1))];
  };

  const at = (path) => path.reduce(
    (found, key) => found.flatMap((one) => alternatives(one.properties?.[key] ?? one.additionalProperties)),
    alternatives(root),
  );

  // ---- Where the cursor is in a TOML document: the path of keys, and whether a key or a value is being written.

  const name = String.raw`(?:[\w-]+|"[^"\n]*"|'[^'\n]*')`;
  const header = new RegExp(String.raw`^\s*\[\[?\s*(${name}(?:\s*\.\s*${name})*)\s*\]\]?\s*(?:#.*)?$`);
  const openHeader = new RegExp(String.raw`^\s*\[\[?\s*((?:${name}\s*\.\s*)*)([\w-]*)$`);
  // The keys of a dotted key.
  const keys = (dotted) => [...dotted.matchAll(new RegExp(name, "g"))].map(([key]) => key.replace(/^["']|["']$/g, ""));

  const place = (text) => {
    const lines = text.split("\n");
    const last = lines.length - 1;
    let table = [];
    let start = 0;
    for (let index = 0; index < last; index += 1) {
      const found = header.exec(lines[index]);
      if (found) { table = keys(found[1]); start = index + 1; }
    }
    const open = openHeader.exec(lines[last]);
    if (open) return { kind: "table", path: keys(open[1]), word: open[2] };
    // Arrays and inline tables that are open, each with the path of its values.
    const stack = [{ kind: "table", path: table }];
    const top = () => stack[stack.length - 1];
    const rest = lines.slice(start).join("\n");
    // The keys before an equals sign; those before the last dot of a key that is being written; and its last part, or a value.
    let key = null;
    let begun = [];
    let word = "";
    const next = () => { key = null; begun = []; word = ""; };
    for (let index = 0; index < rest.length; index += 1) {
      const letter = rest[index];
      const inside = top();
      const isKey = key === null && inside.kind === "table";
      const path = inside.kind === "array" ? inside.path : [...inside.path, ...(key ?? [])];
      if (letter === '"' || letter === "'") {
        const long = letter.repeat(3);
        if (!isKey && rest.startsWith(long, index)) {
          const end = rest.indexOf(long, index + 3);
          if (end < 0) return null;
          word = "";
          index = end + 2;
          continue;
        }
        let end = index + 1;
        while (end < rest.length && rest[end] !== letter && rest[end] !== "\n") end += letter === '"' && rest[end] === "\\" ? 2 : 1;
        if (end >= rest.length) {
          const written = rest.slice(index + 1);
          if (isKey) return { kind: "key", path: [...inside.path, ...begun], word: written, quote: letter };
          return { kind: "text", path, word: written };
        }
        word = rest.slice(index + 1, end);
        index = end;
      } else if (letter === "#") {
        const end = rest.indexOf("\n", index);
        if (end < 0) return null;
        index = end - 1;
      } else if (letter === "=") { key = [...begun, word]; begun = []; word = ""; }
      else if (letter === "[") { stack.push({ kind: "array", path }); word = ""; }
      else if (letter === "{") { stack.push({ kind: "table", path }); next(); }
      else if (letter === "]" || letter === "}") { if (stack.length > 1) stack.pop(); next(); }
      else if (letter === "," || (letter === "\n" && stack.length === 1)) next();
      else if (letter === "." && isKey) { begun.push(word); word = ""; }
      else if (/[\w.-]/.test(letter)) word += letter;
      else if (letter === "\n" || word === "" || key !== null) word = "";
    }
    const inside = top();
    if (inside.kind === "array") return { kind: "value", path: inside.path, word };
    if (key === null) return { kind: "key", path: [...inside.path, ...begun], word };
    return { kind: "value", path: [...inside.path, ...key], word };
  };

  // ---- Where it is in a document of lines: a keyword, or one of its words.

  const linePlace = (text, lines) => {
    const words = text.slice(text.lastIndexOf("\n") + 1).trimStart().split(/\s+/);
    const word = words.pop();
    if ((words[0] ?? word).startsWith("#")) return null;
    if (words.length === 0) return { kind: "keyword", word };
    const described = (Object.hasOwn(lines, words[0]) && lines[words[0]].words) || [];
    const more = described[described.length - 1];
    const schema = described[words.length - 1] ?? (more?.repeats ? more : null);
    return schema ? { kind: "word", schema, word } : null;
  };

  // ---- Names of the appliance, loaded when they are needed.

  const names = (() => {
    const named = (list) => (list ?? []).map((one) => one.name).filter(Boolean);
    // The lists of the configuration that declare names of each kind.
    const lists = {
      account: ["account", "peer", "gateway", "plugin-peer"],
      peer: ["peer", "gateway", "plugin-peer", "account", "gsm"],
      pool: ["pool"],
      "pace-bucket": ["pace-bucket"],
      "send-window": ["send-window"],
    };
    const isConfiguration = area.dataset.schema === "/v1/configuration/schema";
    // Names that the document itself declares, if it is the configuration: they may be new.
    const declared = (kind) => {
      const found = [];
      let list = "";
      for (const text of isConfiguration ? area.value.split("\n") : []) {
        const table = header.exec(text);
        if (table) list = keys(table[1]).join(".");
        const declares = /^\s*name\s*=\s*["']([^"'\n]+)["']/.exec(text);
        if (declares && lists[kind]?.includes(list)) found.push(declares[1]);
      }
      return found;
    };
    let configuration = null;
    const configured = async (kind) => {
      configuration ??= load("/v1/configuration");
      const document = (await configuration)?.document;
      return lists[kind].flatMap((list) => named(document?.[list]));
    };
    const loaders = {
      pool: () => load("/v1/pools").then((found) => named(found?.pools)),
      table: () => load("/v1/tables").then(named),
      "ledger-account": () => load("/v1/ledger").then((found) => (found?.accounts ?? []).map((one) => one.account ?? one.name)),
    };
    const loaded = {};
    return async (kind) => {
      if (!Object.hasOwn(loaders, kind) && !Object.hasOwn(lists, kind)) return [];
      loaded[kind] ??= (loaders[kind] ?? (() => configured(kind)))();
      return [...declared(kind), ...await loaded[kind]];
    };
  })();

  // ---- What can be written at the cursor: the text to insert, and its description.

  const tables = (path) => at(path).flatMap((one) => Object.entries(one.properties ?? {})).filter(
    ([, schema]) => alternatives(schema).some((one) => one.properties),
  );

  // The values of a schema and its alternatives that can be listed.
  const valuesOf = async (found) => {
    const values = found.flatMap((one) => [
      ...(one.enum ?? []).map((value) => ({ value })),
      ...("const" in one ? [{ value: one.const, about: one.description }] : []),
      ...(one.type === "boolean" ? [{ value: true }, { value: false }] : []),
    ]);
    for (const kind of new Set(found.map((one) => one["x-switchyard"]).filter(Boolean))) {
      for (const value of await names(kind)) values.push({ value, about: kind });
    }
    return values;
  };

  const candidates = async (where) => {
    if (where.kind === "keyword") {
      const keywords = Object.entries(root["x-switchyard-lines"]);
      return keywords.map(([name, line]) => ({ text: `${name} `, about: line.description }));
    }
    if (where.kind === "word") {
      const values = await valuesOf(alternatives(where.schema));
      return values.map(({ value, about }) => ({ text: String(value), about }));
    }
    if (where.kind === "table") return tables(where.path).map(([name, schema]) => ({ text: name, about: schema.description }));
    const found = at(where.path);
    if (where.kind === "key") {
      // A key with other characters is quoted.
      const written = (name) => {
        if (where.quote) return `${name}${where.quote}`;
        return /^[\w-]+$/.test(name) ? name : JSON.stringify(name);
      };
      const keys = found.flatMap((one) => Object.entries(one.properties ?? {}));
      return keys.map(([name, schema]) => ({ text: `${written(name)} = `, about: schema.description }));
    }
    const quoted = where.kind === "text" ? (value) => value : (value) => JSON.stringify(value);
    return (await valuesOf(found))
      .filter(({ value }) => where.kind !== "text" || typeof value === "string")
      .map(({ value, about }) => ({ text: typeof value === "string" ? quoted(value) : String(value), about }));
  };

  // ---- The list of completions, and the underlining. The font has one width, so places are computed.

  const frame = document.createElement("div");
  frame.className = "editor";
  area.before(frame);
  frame.append(area);
  const list = document.createElement("ul");
  list.id = "completions";
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Completions");
  list.hidden = true;
  const line = document.createElement("div");
  line.className = "underline";
  line.hidden = true;
  const problem = document.createElement("p");
  problem.id = "document-problem";
  problem.setAttribute("role", "status");
  frame.append(line, list);
  frame.after(problem);
  area.setAttribute("aria-autocomplete", "list");
  area.setAttribute("aria-controls", list.id);

  const measure = () => {
    const style = getComputedStyle(area);
    const context = document.createElement("canvas").getContext("2d");
    context.font = `${style.fontSize} ${style.fontFamily}`;
    return {
      width: context.measureText("0".repeat(100)).width / 100,
      height: parseFloat(style.lineHeight),
      left: area.clientLeft + parseFloat(style.paddingLeft),
      top: area.clientTop + parseFloat(style.paddingTop),
    };
  };

  const move = (element, row, column, below) => {
    const { width, height, left, top } = measure();
    element.style.left = `${left + column * width - area.scrollLeft}px`;
    element.style.top = `${top + (row + (below ? 1 : 0)) * height - area.scrollTop}px`;
    return { width, height };
  };

  let shown = [];
  let chosen = 0;
  let written = "";

  const close = () => { list.hidden = true; area.removeAttribute("aria-activedescendant"); };

  const choose = (index) => {
    chosen = (index + shown.length) % shown.length;
    [...list.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === chosen)));
    area.setAttribute("aria-activedescendant", list.children[chosen].id);
    list.children[chosen].scrollIntoView({ block: "nearest" });
  };

  const accept = () => {
    const end = area.selectionStart;
    area.setRangeText(shown[chosen].text, end - written.length, end, "end");
    close();
    area.dispatchEvent(new Event("input", { bubbles: true }));
    close();
  };

  const complete = async (asked) => {
    const before = area.value.slice(0, area.selectionStart);
    const lined = root?.["x-switchyard-lines"];
    const find = (text) => (lined ? linePlace(text, lined) : place(text));
    const where = root && area.selectionStart === area.selectionEnd ? find(before) : null;
    const isBegun = where && (where.word !== "" || where.kind === "text" || where.kind === "word" || where.quote);
    const found = where && (asked || isBegun) ? await candidates(where) : [];
    // The user went on while names were loaded.
    if (before !== area.value.slice(0, area.selectionStart)) return;
    const word = where?.word ?? "";
    const plain = (text) => text.replace(/^"/, "");
    const unique = new Map(found.map((one) => [one.text, one]));
    shown = [...unique.values()].filter((one) => plain(one.text).startsWith(word) && plain(one.text) !== word).slice(0, 50);
    if (shown.length === 0) { close(); return; }
    written = word;
    list.replaceChildren(...shown.map((one, index) => {
      const item = document.createElement("li");
      item.id = `completion-${index}`;
      item.setAttribute("role", "option");
      const code = document.createElement("code");
      code.textContent = one.text.trim();
      const about = document.createElement("small");
      about.textContent = one.about ?? "";
      item.append(code, " ", about);
      item.addEventListener("mousedown", (event) => { event.preventDefault(); choose(index); accept(); });
      return item;
    }));
    const lines = before.split("\n");
    list.hidden = false;
    move(list, lines.length - 1, lines[lines.length - 1].length - word.length, true);
    choose(0);
  };

  area.addEventListener("keydown", (event) => {
    if (event.key === " " && event.ctrlKey) { event.preventDefault(); complete(true); return; }
    if (list.hidden) return;
    const act = {
      ArrowDown: () => choose(chosen + 1),
      ArrowUp: () => choose(chosen - 1),
      Enter: accept,
      Tab: accept,
      Escape: close,
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  area.addEventListener("blur", close);

  // ---- Checks: the plugin itself, or the daemon, reads the document.

  let marked = null;

  const draw = () => {
    line.hidden = !marked;
    if (!marked) return;
    const { width, height } = move(line, marked.row, marked.column, false);
    line.style.width = `${Math.max(marked.length, 1) * width}px`;
    line.style.height = `${height}px`;
    const top = parseFloat(line.style.top);
    line.hidden = top < 0 || top + height > area.clientHeight;
  };

  const mark = (detail) => {
    const found = /line (\d+)(?:, column (\d+))?/i.exec(detail);
    const rows = area.value.split("\n");
    const row = found ? Number(found[1]) - 1 : -1;
    if (row >= 0 && row < rows.length) {
      const text = rows[row];
      const column = found[2] ? Number(found[2]) - 1 : text.length - text.trimStart().length;
      marked = { row, column, length: text.trimEnd().length - column };
    } else marked = null;
    const words = detail.split("\n").filter((one) => one.trim() !== "");
    problem.textContent = found && words.length > 1 ? `${found[0]}: ${words[words.length - 1]}` : detail;
    problem.className = "problem";
    draw();
  };

  const check = async () => {
    const checked = area.value;
    // The configuration, and a form with grants and limits, is sent as a whole; the page of a live policy has only the document.
    const asked = area.dataset.formCheck
      ? fetch(area.dataset.formCheck, { method: "POST", body: new URLSearchParams(new FormData(area.form)) })
      : fetch(area.dataset.check, {
        method: "POST",
        headers: { "content-type": "application/json", "switchyard-csrf": area.form.elements.csrf.value },
        body: JSON.stringify({ ...JSON.parse(area.dataset.binding), policy: checked, messages: [] }),
      });
    const answer = await asked.catch(() => null);
    // The document has changed meanwhile, or the check could not run.
    if (checked !== area.value || !answer || !(answer.ok || answer.status === 422)) return;
    const found = await answer.json();
    if (answer.status === 422) { mark(found.detail); return; }
    marked = null;
    const unknown = found.unknown.map((one) => `${one.kind} ${one.name}`);
    problem.textContent = unknown.length > 0 ? `Not in the appliance: ${unknown.join(", ")}` : "";
    problem.className = "muted";
    draw();
  };

  let timer = 0;
  area.addEventListener("input", () => {
    marked = null;
    draw();
    complete(false);
    clearTimeout(timer);
    timer = setTimeout(check, 600);
  });
  area.addEventListener("scroll", () => { close(); draw(); });
  addEventListener("resize", draw);
})();
