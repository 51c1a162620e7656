"use strict";
// Insert everything that comes from the service as text, never as markup.

const EVERY = 2000, POINTS = 150, FEWEST = 15, MOST_TEXT = 300;
const SVG = "http://www.w3.org/2000/svg";
const TOKEN = "balog-token";
const $ = id => document.getElementById(id);

function el(name, options, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(options || {})) {
    if (key === "width") made.style.width = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter(child => child !== null && child !== undefined && child !== ""));
  return made;
}

function svg(name, attributes, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// Replace control characters and those that change the direction of text.
const plain = text => {
  const shown = String(text ?? "").replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "\u{FFFD}");
  return shown.length > MOST_TEXT ? shown.slice(0, MOST_TEXT) + "…" : shown;
};
const words = text => el("bdi", {}, plain(text));

const whole = new Intl.NumberFormat("en", {maximumFractionDigits: 0});
const count = value => whole.format(value);
const rate = value => value === null || value === undefined ? "–"
  : value >= 100 ? whole.format(value) : value === 0 ? "0" : value.toFixed(value < 1 ? 2 : 1);
const megabytes = bytes => bytes < 1e4 && bytes > 0 ? "< 0.01" : (bytes / 1e6).toFixed(bytes < 1e8 ? 2 : 0);
const seconds = value => value < 90 ? `${Math.round(value)} s` : value < 5400 ? `${Math.round(value / 60)} min`
  : value < 129600 ? `${Math.round(value / 3600)} h` : `${Math.round(value / 86400)} d`;
const when = text => new Date(text).toISOString().replace("T", " ").slice(0, 19) + "Z";

// Compute rates from the counters of two answers. A restarted service counts from 0.
const series = new Map();
let before = null;

function perSecond(key, value, status) {
  const last = before && before.counters.get(key);
  status.counters.set(key, value);
  if (!before || status.uptime <= before.uptime) return null;
  return Math.max(value - (last ?? 0), 0) / (status.uptime - before.uptime);
}

function remember(key, value) {
  if (!series.has(key)) series.set(key, []);
  const points = series.get(key);
  if (value !== null) points.push(value);
  if (points.length > POINTS) points.shift();
  return points;
}

// The newest point is at the right. With fewer than FEWEST points, the left is empty.
const place = (points, index, width) => {
  const span = Math.max(points.length, FEWEST);
  return (span - points.length + index) * width / (span - 1);
};

function path(points, top, width, height) {
  return points.map((value, index) =>
    `${place(points, index, width).toFixed(2)},${(height - 1 - value / top * (height - 2)).toFixed(2)}`).join(" ");
}

function spark(points) {
  const top = Math.max(...points, 1e-9);
  const drawn = svg("svg", {class: "spark", viewBox: "0 0 150 20", preserveAspectRatio: "none", "aria-hidden": "true"});
  if (points.length > 1) drawn.append(svg("polyline", {class: "line", points: path(points, top, 150, 20)}));
  return drawn;
}

function plot(taken, failed) {
  const top = Math.max(...taken, ...failed, 1);
  const drawn = svg("svg", {class: "plot", viewBox: "0 0 600 100", preserveAspectRatio: "none", role: "img",
    "aria-label": `Now ${rate(taken.at(-1) ?? 0)} accepted a second, at most ${rate(top)}`});
  for (const part of [1, 50, 99]) drawn.append(svg("line", {class: "grid", x1: 0, x2: 600, y1: part, y2: part}));
  if (taken.length > 1) {
    const line = path(taken, top, 600, 100);
    const left = place(taken, 0, 600).toFixed(2);
    drawn.append(svg("polygon", {class: "area", points: `${left},99 ${line} 600,99`}));
    drawn.append(svg("polyline", {class: "line", points: line}));
    drawn.append(svg("polyline", {class: "line failed", points: path(failed, top, 600, 100)}));
  }
  return [el("small", {class: "note"}, `${rate(top)} /s`), drawn];
}

function fill(id, rows, empty) {
  const table = $(id), labels = [...table.tHead.rows[0].cells].map(cell => cell.textContent);
  const body = table.tBodies[0];
  if (!rows.length) {
    body.replaceChildren(el("tr", {}, el("td", {class: "none", colspan: labels.length}, empty)));
    return;
  }
  body.replaceChildren(...rows.map(cells => el("tr", {}, ...cells.map((cell, index) => {
    const isNumber = table.tHead.rows[0].cells[index].className === "n";
    const made = cell instanceof HTMLTableCellElement ? cell : el("td", isNumber ? {class: "n"} : {}, cell);
    made.dataset.label = labels[index];
    return made;
  }))));
}

const warned = (value, text) => el("td", {class: value > 0 ? "n warn" : "n"}, text ?? count(value));

function fact(name, value, note, isBad) {
  return el("div", isBad ? {class: "bad"} : {}, el("dt", {}, name), el("dd", {}, value, el("small", {}, note)));
}

function showStreams(status) {
  const streams = new Map();
  const of = name => {
    if (!streams.has(name)) streams.set(name, {taken: 0, refused: 0, later: 0, failed: 0});
    return streams.get(name);
  };
  for (const event of status.events) {
    const found = of(event.stream);
    if (event.status === "202") found.taken += event.count;
    else if (event.status === "429") found.later += event.count;
    else found.refused += event.count;
  }
  for (const name of Object.keys(status.intake.streams)) of(name);
  const total = {taken: 0, refused: 0, later: 0};
  const rows = [...streams].sort(([a], [b]) => a < b ? -1 : 1).map(([name, found]) => {
    for (const key of Object.keys(total)) total[key] += found[key];
    const speed = perSecond(`stream ${name}`, found.taken, status);
    const waiting = (status.intake.streams[name] || {waiting: 0}).waiting;
    return [words(name || "(no stream)"), rate(speed), spark(remember(`stream ${name}`, speed)), count(found.taken),
      warned(found.refused), warned(found.later), count(waiting)];
  });
  fill("streams", rows, "No event since the service started.");
  return total;
}

function showFacts(status, total) {
  const taken = perSecond("taken", total.taken, status);
  const refused = perSecond("refused", total.refused, status);
  const later = perSecond("later", total.later, status);
  const intake = status.intake;
  $("facts").replaceChildren(
    fact("Accepted", `${rate(taken)} /s`, `${count(total.taken)} since the start`),
    fact("Rejected", `${rate(refused)} /s`, `${count(total.refused)} since the start`, refused > 0),
    fact("Rate limited", `${rate(later)} /s`, `${count(total.later)} since the start`, later > 0),
    fact("Duplicates", count(intake.duplicates), "acknowledged, not stored again"),
    fact("In flight", count(intake.in_flight), `${megabytes(intake.in_flight_bytes)} MB`),
    fact("In the fallback", count(intake.backlog), intake.backlog ? "until the topics recover" : "empty",
      intake.backlog > 0));
  const failures = refused === null ? null : refused + later;
  $("plot").replaceChildren(...plot(remember("all", taken), remember("failures", failures)));
}

function showStores(status) {
  const writers = Object.entries(status.intake.topics);
  fill("stores", Object.entries(status.intake.stored).map(([store, stored]) => {
    const using = writers.filter(([, writer]) => writer.store === store).map(([name]) => name);
    const isOut = store === "fallback" && using.length > 0;
    return [words(store), rate(perSecond(`store ${store}`, stored, status)), count(stored),
      store === "fallback" ? warned(status.intake.backlog) : "–",
      el("td", isOut ? {class: "warn"} : {}, words(using.length ? using.slice(0, 20).join(", ") : "–"))];
  }), "");
}

function showTopics(status) {
  const most = Math.max(1, ...status.topics.flatMap(topic => topic.groups.map(group => group.lag)));
  fill("topics", status.topics.map(topic => {
    if (topic.error) {
      return [words(topic.name), "–", "–", "–", "–", el("td", {class: "bad"}, words(topic.error))];
    }
    const points = remember(`topic ${topic.name}`, topic.rate);
    return [words(topic.name), count(topic.messages), megabytes(topic.bytes), rate(topic.rate), spark(points),
      groups(topic, most)];
  }), "There is no topic yet.");
  const age = Math.max(0, ...status.topics.map(topic => topic.age));
  $("topics-note").textContent = status.topics.length ? `Inspected within the last ${seconds(Math.max(age, 1))}.` : "";
}

function groups(topic, most) {
  if (!topic.groups.length) return el("small", {class: "note"}, "no group");
  return el("ul", {class: "groups"}, ...topic.groups.map(group => {
    const stats = [`lag ${count(group.lag)}`];
    if (group.in_flight) stats.push(`${count(group.in_flight)} in flight`);
    if (group.waiting) stats.push(`${count(group.waiting)} delayed retries`);
    if (group.rate !== null) stats.push(`${rate(group.rate)} /s`);
    const dead = group.dead ? el("span", {class: "bad"}, `, ${count(group.dead)} dead letters`) : "";
    const isFar = topic.messages > 0 && group.lag > topic.messages / 2 && group.lag > 1000;
    return el("li", {}, words(group.name), " ", el("small", {}, stats.join(", "), dead),
      el("div", {class: isFar ? "lag far" : "lag", "aria-hidden": "true"}, el("i", {width: `${100 * group.lag / most}%`})));
  }));
}

function showJobs(status) {
  const jobs = [...status.jobs].sort((a, b) => !!b.error - !!a.error || (a.kind + a.name < b.kind + b.name ? -1 : 1));
  fill("jobs", jobs.map(job => [words(`${job.kind} ${job.name}`),
    el("td", {class: job.state === "running" ? "good" : "warn"}, job.state),
    rate(perSecond(`job ${job.kind} ${job.name}`, job.done, status)), count(job.done), warned(job.failed),
    warned(job.dead), job.lag === null || job.lag === undefined ? "–" : count(job.lag),
    el("td", job.error ? {class: "bad"} : {}, job.error ? words(job.error) : "–")]),
    "This service runs no filter, table or callback.");
}

function showDocument(status) {
  const own = status.document;
  const newest = status.history.length ? status.history[0].number : 0;
  $("document-note").textContent = own ? `Version ${own.number} is applied; the newest is ${newest}.`
    : "This service has no version store; its document is empty.";
  for (const id of ["services", "history"]) $(id).hidden = !own;
  if (!own) return;
  const now = status.time * 1000;
  fill("services", status.services.map(service => {
    const isBad = service.state === "refused" || (service.state !== "stopped" && service.number < newest);
    const state = service.reason && service.state !== "applied" ? `${service.state}: ${service.reason}` : service.state;
    return [words(service.service), el("td", {class: isBad ? "n bad" : "n"}, count(service.number)),
      el("td", isBad ? {class: "bad"} : {}, words(state)),
      `${seconds(Math.max(0, now - Date.parse(service.when)) / 1000)} ago`];
  }), "No service has reported yet.");
  fill("history", status.history.map(entry => [String(entry.number),
    words(entry.from === null || entry.from === undefined ? entry.action : `${entry.action} to ${entry.from}`),
    when(entry.when), words(entry.who), words(entry.message || "–")]), "No version was pushed yet.");
}

function showErrors(status) {
  const found = [];
  if (status.intake.error) found.push(`Some events are rejected: ${status.intake.error}`);
  for (const [name, writer] of Object.entries(status.intake.topics)) {
    if (writer.error) found.push(`Topic ${name}, events go to the ${writer.store}: ${writer.error}`);
  }
  if (status.topics_error) found.push(`Topics cannot be listed: ${status.topics_error}`);
  for (const job of status.jobs) if (job.error) found.push(`${job.kind} ${job.name}: ${job.error}`);
  if (status.control_error) found.push(`Versions cannot be read: ${status.control_error}`);
  const own = status.document;
  if (own && own.reason) found.push(`Document, ${own.state}: ${own.reason}`);
  $("errors").replaceChildren(...found.slice(0, 50).map(text => el("li", {}, words(text))));
  $("errors-section").hidden = !found.length;
}

function show(status) {
  status.counters = new Map();
  $("service").replaceChildren(words(status.service));
  document.title = `${plain(status.service)} – balog`;
  const version = status.document ? `, document version ${status.document.number}` : "";
  say(`Up for ${seconds(status.uptime)}${version}.`, false);
  showFacts(status, showStreams(status));
  showStores(status);
  showTopics(status);
  showJobs(status);
  showDocument(status);
  showErrors(status);
  before = status;
  $("login").hidden = true;
  $("live").hidden = false;
  $("forget").hidden = sessionStorage.getItem(TOKEN) === null;
}

function say(text, isStale) {
  $("where").textContent = text;
  $("where").className = isStale ? "where stale" : "where";
  $("live").className = isStale ? "stale" : "";
}

function askForToken(why) {
  sessionStorage.removeItem(TOKEN);
  $("live").hidden = $("forget").hidden = true;
  $("login").hidden = false;
  $("login-why").textContent = why;
  say("Sign in to see the status.", false);
}

let answered = Date.now(), timer = 0;

async function refresh() {
  clearTimeout(timer);
  if (!document.hidden) {
    const token = sessionStorage.getItem(TOKEN);
    try {
      const answer = await fetch("v1/status", {cache: "no-store", credentials: "omit", signal: AbortSignal.timeout(10000),
        headers: token === null ? {} : {Authorization: `Bearer ${token}`}});
      if (answer.status === 401 || answer.status === 403) {
        const body = await answer.json().catch(() => ({}));
        askForToken(token === null ? "" : plain(body.problem));
        return;
      }
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      show(await answer.json());
      answered = Date.now();
    } catch (error) {
      say(`No numbers for ${seconds((Date.now() - answered) / 1000)}: ${plain(error.message)}`, true);
    }
  }
  timer = setTimeout(refresh, EVERY);
}

$("login").addEventListener("submit", event => {
  event.preventDefault();
  const token = $("token").value.trim();
  $("token").value = "";
  if (/^[\x21-\x7e]+$/.test(token)) {
    sessionStorage.setItem(TOKEN, token);
    refresh();
  } else {
    askForToken("This is not a token.");
  }
});
$("forget").addEventListener("click", () => askForToken(""));
document.addEventListener("visibilitychange", () => { if (!document.hidden && $("login").hidden) refresh(); });
refresh();
