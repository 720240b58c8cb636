"use strict";
(() => {
  const ROWS = 300;
  const BOXES = 100;
  const STRIPS = 40;
  const OPEN = 3;
  const NAMED = 20;
  const SVG = "http://www.w3.org/2000/svg";
  const MARKS = { bad: "✕", open: "?", good: "▲", plain: "✓", quiet: "" };
  const data = JSON.parse(document.getElementById("data").textContent);

  // Everything is shown as text: no string of the data is ever read as markup.
  const make = (space, name, attributes, children) => {
    const node = space ? document.createElementNS(space, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
    for (const child of children) if (child !== null) node.append(child);
    return node;
  };
  const el = (name, attributes, ...children) => make(null, name, attributes, children);
  const svg = (name, attributes, ...children) => make(SVG, name, attributes, children);

  // Text between backquotes is code.
  const prose = (text) => {
    const parts = text.split("`");
    if (parts.length % 2 === 0) return [text];
    return parts.map((part, at) => (at % 2 === 1 ? el("code", {}, part) : part));
  };

  // Adds the first of many, and a button for the next of them.
  const inParts = (place, count, size, build) => {
    let built = 0;
    const button = el("button", { type: "button" });
    const more = () => {
      const end = Math.min(count, built + size);
      const part = document.createDocumentFragment();
      for (; built < end; built += 1) part.append(build(built));
      place.append(part);
      button.textContent = `Show ${Math.min(size, count - built)} more of ${count - built}`;
      button.hidden = built === count;
    };
    button.addEventListener("click", more);
    more();
    // Builds until this one is there.
    button.upTo = (at) => { while (built <= at && built < count) more(); };
    return button;
  };

  const whenOpened = (details, build) => {
    let built = false;
    const once = () => {
      if (!details.open || built) return;
      built = true;
      build();
    };
    details.addEventListener("toggle", once);
    once();
  };

  const table = (variant, rows, caption) => {
    const names = ["metric", variant.reference, "current", "change", "tolerance", "fails beyond", "verdict", "why"];
    const classes = ["metric", "value", "value", "change", "tolerance", "threshold", "word", "why"];
    const header = names.map((name, at) =>
      el("th", { scope: "col", role: "columnheader", class: at === 0 || at > 5 ? "left" : "" }, name));
    if (variant.kernels) header.splice(1, 0, el("th", { scope: "col", role: "columnheader", class: "left" }, "kernel"));
    const body = el("tbody", { role: "rowgroup" });
    const build = (at) => {
      const [kernel, metric, reference, current, change, tolerance, threshold, verdict, why, look] = rows[at];
      const words = data.words;
      const mark = MARKS[words[look]];
      const texts = [words[metric], reference, current, change, words[tolerance], threshold, `${mark} ${words[verdict]}`.trim(), words[why]];
      const cells = texts.map((text, at) => {
        if (at === 0) return el("th", { scope: "row", role: "rowheader" }, text);
        const cell = el("td", { role: "cell", class: classes[at] + (text === "–" ? " none" : "") }, ...prose(text));
        if (at < 6) cell.dataset.label = names[at];
        return cell;
      });
      if (variant.kernels) cells.splice(1, 0, el("td", { role: "cell", class: "kernel" }, words[kernel]));
      return el("tr", { role: "row", class: words[look] }, ...cells);
    };
    const button = inParts(body, rows.length, ROWS, build);
    const whole = el("table", { role: "table", class: "cards", "aria-label": caption },
      el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...header)), body);
    return [el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": caption }, whole), button];
  };

  const DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  const STEPS = 4095;
  const decoded = (text) => (text === "" ? [] : text.split(" ").map((process) => {
    const steps = [];
    for (let at = 0; at < process.length; at += 2) {
      steps.push(DIGITS.indexOf(process[at]) * 64 + DIGITS.indexOf(process[at + 1]));
    }
    return { location: steps[0], launches: steps.slice(1) };
  }));

  const px = (value) => String(Math.round(value * 10) / 10);
  const shortened = (text, columns) => {
    const letters = Array.from(text);
    return letters.length > columns ? letters.slice(0, columns - 1).join("") + "…" : text;
  };

  // The same picture as src/report/plot/samples.rs draws.
  const strip = (given, reference) => {
    const narrow = matchMedia("(max-width: 900px)").matches;
    const width = narrow ? 330 : 1000;
    const left = narrow ? 62 : 74;
    const wide = width - left - 4;
    const [head, half] = [22, 26];
    const bottom = head + 2 * half;
    const word = data.words[given.verdict];
    const x = (step) => left + (step / STEPS) * wide;
    const label = (attributes, text) => svg("text", attributes, text);
    const nodes = [
      svg("title", {}, `${given.name}: ${given.summary} (${word})`),
      svg("text", { class: "name", x: 0, y: 13 }, shortened(given.name, narrow ? 32 : 60),
        svg("tspan", narrow ? { class: given.class, x: width, "text-anchor": "end" } : { class: given.class, dx: 8 }, `${MARKS[given.class]} ${word}`)),
    ];
    if (!narrow) nodes.push(label({ class: "figure", x: width, y: 13, "text-anchor": "end" }, given.summary));
    nodes.push(svg("rect", { class: "rail", x: left, y: head, width: wide, height: 2 * half }));
    if (given.band) {
      const [from, to] = given.band.map(x);
      nodes.push(svg("rect", { class: "band", x: px(from), y: head, width: px(Math.max(1, to - from)), height: 2 * half }));
    }
    for (const limit of given.limits) {
      nodes.push(svg("path", { class: "limit", d: `M${px(x(limit))} ${head - 3}V${bottom + 3}` }));
    }
    [[given.reference, reference], [given.current, "current"]].forEach(([coded, name], at) => {
      const processes = decoded(coded);
      const top = head + half * at;
      const line = (index) => top + ((index + 0.5) * half) / processes.length;
      const high = Math.max(4, half / processes.length);
      const launches = processes.map((process, index) =>
        process.launches.map((step) => `M${px(x(step))} ${px(line(index))}h0`).join("")).join("");
      const marks = processes.map((process, index) =>
        `M${px(x(process.location))} ${px(line(index) - high / 2)}v${px(high)}`).join("");
      nodes.push(svg("g", { class: at === 0 ? "was" : given.class },
        label({ class: "quiet", x: left - 8, y: top + half / 2 + 4, "text-anchor": "end" }, name),
        svg("path", { class: "launches", d: launches }),
        svg("path", { class: "processes", d: marks }),
        svg("path", { class: "value", d: `M${px(x(given.values[at]))} ${top + 1}v${half - 2}` })));
    });
    for (const [step, text] of given.ticks) {
      const anchor = step < STEPS / 12 ? "start" : step > STEPS - STEPS / 12 ? "end" : "middle";
      nodes.push(label({ class: "quiet", x: px(x(step)), y: bottom + 15, "text-anchor": anchor }, text));
    }
    return svg("svg", { class: "plot", viewBox: `0 0 ${width} ${bottom + 22}`, width, height: bottom + 22, role: "img", "aria-label": given.name }, ...nodes);
  };

  const samples = (variant) => {
    const count = variant.strips.length;
    if (count === 0 && variant.omitted[1] === 0) return null;
    const details = el("details", { class: "samples" }, el("summary", {}, `Samples of ${count} judged metric${count === 1 ? "" : "s"}`));
    whenOpened(details, () => {
      const place = el("div", {});
      const button = inParts(place, count, STRIPS, (at) => strip(variant.strips[at], variant.reference));
      details.append(el("p", { class: "note" }, data.legend), place, button);
      if (variant.omitted[1] > 0) {
        details.append(el("p", { class: "note" }, `The samples of ${variant.omitted[1]} further metrics are left out to keep this page small; the JSON form contains them.`));
      }
    });
    return details;
  };

  const fill = (variant, inside) => {
    inside.append(el("p", { class: "provenance" }, variant.provenance));
    if (variant.commits) {
      const links = variant.commits.flatMap(([name, short, href], at) =>
        [at === 0 ? "commits: " : ", ", `${name} `, el("a", { href, rel: "noreferrer" }, el("code", {}, short))]);
      inside.append(el("p", { class: "provenance" }, ...links));
    }
    if (variant.rows.length > 0) inside.append(...table(variant, variant.rows, `Metrics of ${variant.title}`));
    if (variant.lines.length > 0) {
      inside.append(el("ul", { class: "lines" }, ...variant.lines.map((line) => el("li", {}, line))));
    }
    if (variant.still.length > 0) {
      const others = el("details", { class: "samples still" }, el("summary", {}, `Metrics that did not move: ${variant.still.length}`));
      whenOpened(others, () => others.append(...table(variant, variant.still, `Further metrics of ${variant.title}`)));
      inside.append(others);
    }
    if (variant.omitted[0] > 0) {
      inside.append(el("p", { class: "note" }, `${variant.omitted[0]} rows of metrics that pass or are only recorded are left out to keep this page small; the JSON form contains them.`));
    }
    const drawn = samples(variant);
    if (drawn !== null) inside.append(drawn);
  };

  // The first boxes are open: those with regressions, then those with open verdicts.
  const of = (look) => [...data.variants.keys()].filter((at) => data.variants[at].class === look);
  const opened = new Set([...of("bad"), ...of("open")].slice(0, OPEN));
  const box = (at) => {
    const variant = data.variants[at];
    const [first, ...others] = variant.counts.length > 0 ? variant.counts : ["nothing judged"];
    const mark = MARKS[variant.class];
    const line = el("span", { class: "counts-line" }, el("span", { class: "first" }, `${mark} ${first}`.trim()), others.map((text) => `, ${text}`).join(""));
    const details = el("details", { class: `box ${variant.class === "open" ? "open-verdict" : variant.class}` },
      el("summary", {}, el("h3", {}, variant.title), line));
    details.open = opened.has(at);
    whenOpened(details, () => {
      const inside = el("div", { class: "inside" });
      fill(variant, inside);
      details.append(inside);
    });
    return details;
  };

  const places = document.getElementById("variants");
  const boxes = el("div", {});
  const button = inParts(boxes, data.variants.length, BOXES, box);
  places.append(boxes, button);
  // The contents name the variants that need a reader.
  const troubled = document.getElementById("troubled");
  if (troubled !== null) {
    const all = [...of("bad"), ...of("open")];
    for (const at of all.slice(0, NAMED)) {
      const variant = data.variants[at];
      const link = el("a", { href: "#variants" }, variant.title);
      link.addEventListener("click", (event) => {
        event.preventDefault();
        button.upTo(at);
        const found = boxes.children[at];
        found.open = true;
        found.scrollIntoView();
        found.querySelector("summary").focus({ preventScroll: true });
      });
      troubled.append(el("li", { class: variant.class }, `${MARKS[variant.class]} `, link));
    }
    if (all.length > NAMED) troubled.append(el("li", {}, `and ${all.length - NAMED} more`));
  }
  if (data.variants.length === 0) places.append(el("p", { class: "note" }, "No variant was judged."));

  const finding = (found, look) => {
    const item = el("li", { class: look },
      el("p", { class: "what" }, el("span", { class: "code" }, found.code), " ", el("strong", {}, found.subject)),
      el("p", {}, ...prose(found.message)));
    if (found.detail !== null) item.append(el("details", {}, el("summary", {}, "output"), el("pre", { tabindex: "0" }, found.detail)));
    item.append(el("p", { class: "next" }, el("span", {}, "Next"), " ", ...prose(found.next)));
    return item;
  };
  for (const details of document.querySelectorAll("details.further")) {
    const further = data.findings[details.dataset.severity];
    const look = details.dataset.severity === "fails" ? "bad" : "open";
    whenOpened(details, () => {
      const list = el("ol", { class: "findings" });
      const button = inParts(list, further.length, ROWS, (at) => finding(further[at], look));
      details.append(list, button);
    });
  }

  // On paper nothing can be opened.
  addEventListener("beforeprint", () => {
    if (data.variants.length > BOXES) return;
    for (const details of document.querySelectorAll(".box, .findings details")) details.open = true;
  });
})();
