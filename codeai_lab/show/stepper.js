// What does a person see, hear and press?
//
// Chapter: 003, "Play the trace below".
//
// Idea: the kernel keeps the states; this file draws what the kernel says and sends back what is asked for. Nodes
// are made one time and changed in place, so that focus stays where it is. A step brings the marks that are new,
// never the whole time line.
//
// Always true:
//   JS1. Nothing is ever `disabled`: a control that would do nothing says so when it is pressed, and keeps focus.
//   JS2. Whatever can have focus keeps the notebook's own keys away: `b` and `d d` change no cell from here.
//   JS3. Text is set as text, never as HTML.

const SIGNS = { start: "○", step: "●", checkpoint: "◆", failure: "✕", refusal: "⊘", choice: "◇", end: "■" };
const PACE_MS = 700;
const PATIENCE_MS = 4000;
const NO_ANSWER = "The kernel has not answered yet. It may be busy; if it is gone, run this cell again.";

function initialize({ model }) {
  model.on("change:now", () => {
    const { since, marks, length } = model.get("now");
    const line = model.get("line");
    line.splice(since, line.length, ...marks);
    if (line.length !== length) model.send({ do: "whole" });
  });
}

function render({ model, el }) {
  const view = build(el, model.get("title"));
  let timer = null;
  let patience = null;
  let unanswered = 0;
  let playing = false;

  function ask(what) {
    wait(unanswered + 1);
    model.send(what);
  }

  function wait(number) {
    unanswered = Math.max(0, number);
    view.group.setAttribute("aria-busy", String(unanswered > 0));
    clearTimeout(patience);
    if (unanswered > 0) patience = setTimeout(() => say(NO_ANSWER), PATIENCE_MS);
  }

  function say(trouble) {
    setText(view.trouble, trouble);
    view.trouble.hidden = !trouble;
  }

  function draw() {
    const now = model.get("now");
    drawLine(view, model.get("line"), now);
    setText(view.status, now.headline);
    say(now.trouble);
    drawChoices(view, now, (name) => ask({ do: "choose", name }));
    setOff(view.back, now.at === 0);
    setOff(view.step, !now.can_go_on);
    setOff(view.play, !now.can_go_on && !playing);
    fill(view.facts, ["what", "now"], now.facts);
  }

  function drawCompared() {
    const { caption, head, body } = model.get("compared");
    view.compared.hidden = !body;
    if (body) fill(view.compared, head, body, caption);
  }

  function setPlaying(on) {
    playing = on;
    clearTimeout(timer);
    setText(view.play, on ? "Pause" : "Play");
  }

  function onNow() {
    const now = model.get("now");
    if (playing && (now.trouble || !now.can_go_on)) setPlaying(false);
    draw();
    wait(unanswered - 1);
    clearTimeout(timer);
    if (playing) timer = setTimeout(() => ask({ do: "step" }), PACE_MS);
  }

  function stepOnce() {
    setPlaying(false);
    ask({ do: "step" });
  }

  function backOnce() {
    setPlaying(false);
    ask({ do: "back" });
  }

  view.form.addEventListener("submit", (event) => {
    event.preventDefault();
    stepOnce();
  });
  view.back.addEventListener("click", backOnce);
  view.play.addEventListener("click", () => {
    setPlaying(!playing);
    if (playing) ask({ do: "step" });
  });
  view.bar.addEventListener("keydown", (event) => {
    const does = { ArrowRight: stepOnce, ArrowLeft: backOnce }[event.key];
    if (!does || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    does();
  });

  const heard = { "change:now": onNow, "change:line": draw, "change:compared": drawCompared };
  for (const [name, listener] of Object.entries(heard)) model.on(name, listener);
  draw();
  drawCompared();
  return () => {
    setPlaying(false);
    clearTimeout(patience);
    for (const [name, listener] of Object.entries(heard)) model.off(name, listener);
  };
}

// --- the nodes ---------------------------------------------------------------------------------------------

function build(el, title) {
  const group = put(el, "div", {
    class: "codeai-lab-stepper", role: "group", "aria-label": title, tabindex: "-1", ...QUIET,
  });
  put(group, "p", { class: "cls-title" }, title);
  const line = put(group, "ol", { class: "cls-line", "aria-label": "time line", ...QUIET });
  const form = put(group, "form", {});
  const bar = put(form, "div", { class: "cls-bar" });
  const back = put(bar, "button", { type: "button", "aria-keyshortcuts": "ArrowLeft", ...QUIET }, "Back");
  const step = put(bar, "button", { type: "submit", "aria-keyshortcuts": "ArrowRight", ...QUIET }, "Step");
  const play = put(bar, "button", { type: "button", ...QUIET }, "Play");
  put(bar, "span", { class: "cls-hint" }, "on a button: → steps, ← goes back");
  const status = put(form, "p", { class: "cls-status", role: "status" });
  const trouble = put(form, "p", { class: "cls-trouble", role: "alert", hidden: "" });
  const choices = put(form, "fieldset", { hidden: "" });
  put(choices, "legend", {}, "How to go on");
  const facts = table(group, "Now");
  const compared = table(group, "");
  return { group, line, marks: [], form, bar, back, step, play, status, trouble, choices, offered: "", facts, compared };
}

const QUIET = { "data-lm-suppress-shortcuts": "true" };

function put(parent, tag, attributes, text) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function setOff(button, isOff) {
  button.setAttribute("aria-disabled", String(isOff));
}

// --- the time line -----------------------------------------------------------------------------------------

function drawLine(view, line, now) {
  const { marks } = view;
  const kept = marks.length < now.since ? 0 : now.since;
  const changed = marks.length !== line.length || now.marks.length > 0;
  if (changed) {
    for (const mark of marks.splice(kept)) mark.remove();
    for (const [name, kind] of line.slice(kept)) marks.push(markOf(view.line, name, kind));
  }
  view.current?.removeAttribute("aria-current");
  view.current = marks[now.at];
  if (!view.current) return;
  view.current.setAttribute("aria-current", "step");
  // Only the line scrolls, never the page.
  const { offsetLeft, offsetWidth } = view.current;
  view.line.scrollLeft = offsetLeft - (view.line.clientWidth - offsetWidth) / 2;
}

function markOf(parent, name, kind) {
  const mark = put(parent, "li", { "data-kind": kind });
  put(mark, "span", { class: "cls-sign", "aria-hidden": "true" }, SIGNS[kind] ?? SIGNS.step);
  put(mark, "span", {}, name);
  if (kind !== "step" && kind !== "start") put(mark, "span", { class: "cls-kind" }, kind);
  return mark;
}

// --- the choices -------------------------------------------------------------------------------------------

function drawChoices(view, now, choose) {
  const { choices } = view;
  const offered = JSON.stringify(now.choices);
  if (offered !== view.offered) {
    const hadFocus = choices.contains(choices.getRootNode().activeElement);
    view.offered = offered;
    for (const label of choices.querySelectorAll("label")) label.remove();
    for (const choice of now.choices) choices.append(choiceOf(choice, choose));
    choices.hidden = now.choices.length === 0;
    if (hadFocus) (radioOf(choices, now.selected) ?? view.step).focus();
  }
  for (const radio of choices.querySelectorAll("input")) radio.checked = radio.value === now.selected;
}

function choiceOf({ name, label, meaning }, choose) {
  const whole = document.createElement("label");
  const radio = put(whole, "input", { type: "radio", name: "how", value: name, ...QUIET });
  radio.addEventListener("change", () => choose(name));
  put(whole, "span", {}, label);
  if (meaning) put(whole, "span", { class: "cls-meaning" }, meaning);
  return whole;
}

function radioOf(choices, name) {
  return [...choices.querySelectorAll("input")].find((radio) => radio.value === name);
}

// --- the tables --------------------------------------------------------------------------------------------

function table(parent, caption) {
  const scroller = put(parent, "div", { class: "cls-table", hidden: "", ...QUIET });
  const node = put(scroller, "table", {});
  put(node, "caption", {}, caption);
  put(put(node, "thead", {}), "tr", {});
  put(node, "tbody", {});
  return scroller;
}

function fill(scroller, head, rows, caption) {
  scroller.hidden = rows.length === 0;
  const node = scroller.firstElementChild;
  if (caption) setText(node.caption, caption);
  fillRow(node.tHead.rows[0], head, () => ["th", "col"]);
  const body = node.tBodies[0];
  while (body.rows.length > rows.length) body.lastElementChild.remove();
  while (body.rows.length < rows.length) put(body, "tr", {});
  rows.forEach((cells, number) => fillRow(body.rows[number], cells, (place) => (place ? ["td"] : ["th", "row"])));
}

function fillRow(row, cells, kindOf) {
  while (row.cells.length > cells.length) row.lastElementChild.remove();
  cells.forEach((text, place) => {
    const [tag, scope] = kindOf(place);
    setText(row.cells[place] ?? put(row, tag, scope ? { scope } : {}), text);
  });
}

export default { initialize, render };
