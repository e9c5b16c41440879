// The live page of a watch: asks for its status twice a second and shows it. What comes from traces becomes text nodes, never markup.
"use strict";
(() => {
  const PAUSE = 500;
  const RATES_MAX = 600;
  const rates = [];
  const byId = (id) => document.getElementById(id);

  const element = (name, text, kind) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };
  const number = (value) => Math.round(value).toLocaleString("en");

  const tile = (name, value, kind) => {
    const made = element("div", undefined, "tile" + (kind ? " " + kind : ""));
    made.append(element("span", name), element("b", value));
    return made;
  };

  const drawRates = () => {
    const most = Math.max(1, ...rates);
    const width = 600 / (RATES_MAX - 1);
    const points = rates.map((rate, place) => `${(place * width).toFixed(1)},${(110 - (100 * rate) / most).toFixed(1)}`);
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    path.setAttribute("d", points.length ? "M" + points.join("L") : "");
    const text = document.createElementNS("http://www.w3.org/2000/svg", "text");
    text.setAttribute("x", "4");
    text.setAttribute("y", "12");
    text.textContent = `up to ${number(most)}`;
    byId("rate").replaceChildren(path, text);
  };

  const violation = (told) => {
    const made = element("div", undefined, "violation");
    made.append(element("b", `${told.kind === "deviation" ? "documented deviation " : ""}${told.number}: ${told.name} (${told.mechanism}), ${told.at.toFixed(1)} s`), element("p", told.summary + "."));
    const list = element("ul");
    told.reasons.forEach((reason) => list.append(element("li", reason + ".")));
    if (told.saved) list.append(element("li", `The history around it is in ${told.saved}.`));
    if (told.opinion) list.append(element("li", told.opinion + "."));
    made.append(list);
    return made;
  };

  let shown = "";
  const showViolations = (status) => {
    const key = JSON.stringify([status.stories, status.violations]);
    if (key === shown) return;
    shown = key;
    const names = Object.entries(status.violations);
    if (!names.length) return;
    const all = [element("p", names.map(([name, count]) => `${name}: ${number(count)}`).join(", "))];
    status.stories.forEach((told) => all.push(violation(told)));
    byId("violations").replaceChildren(...all);
  };

  const show = (status) => {
    byId("title").textContent = `${status.title}, profile ${status.profile}${status.is_over ? " (over)" : ""}`;
    const violations = Object.values(status.violations).reduce((sum, count) => sum + count, 0);
    const tiles = [
      tile("violations", number(violations), violations ? "bad" : "good"),
      tile("operations a second", number(status.rate)),
      tile("operations", number(status.operations)),
      tile("committed", number(status.committed)),
      tile("aborted", number(status.aborted)),
      tile("unknown", number(status.unknown)),
      tile("behind the clients", `${number(status.lag_seconds * 1000)} ms`),
      tile("uncertain", `${(status.uncertain_share * 100).toFixed(2)} %`),
      tile("memory", `${number(status.memory_bytes / 1048576)} MB`),
      tile("clients", `${status.clients_open} of ${status.clients}`),
    ];
    if (status.ended_by) tiles.push(tile("ended early", status.ended_by, "bad"));
    if (status.complete_checker) tiles.push(tile("complete checker", status.complete_checker));
    byId("tiles").replaceChildren(...tiles);
    rates.push(status.rate);
    if (rates.length > RATES_MAX) rates.shift();
    drawRates();
    showViolations(status);
    const rows = Object.entries(status.dependencies).map(([name, kind]) => {
      const row = element("tr");
      [name, kind.certain, kind.by_content, kind.by_locks, kind.by_first_updater, kind.uncertain].forEach((cell) =>
        row.append(element("td", typeof cell === "number" ? number(cell) : cell)),
      );
      return row;
    });
    byId("dependencies").replaceChildren(...rows);
    const troubles = Object.entries(status.troubles).map(([what, count]) => element("p", `${what}: ${number(count)}`));
    if (!troubles.length) troubles.push(element("p", "Nothing."));
    byId("troubles").replaceChildren(...troubles);
    return status.is_over;
  };

  const ask = async () => {
    try {
      const answer = await fetch("/status.json", { cache: "no-store" });
      if (show(await answer.json())) return;
    } catch {
      byId("title").textContent = "the watch has ended, or cannot be reached";
    }
    setTimeout(ask, PAUSE);
  };
  ask();
})();
