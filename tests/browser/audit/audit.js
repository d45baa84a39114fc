// Runs inside the page and returns a list of faults in words: names, labels, roles, contrast, targets, overflow.
// Contrast follows WCAG 2.2 (1.4.3, 1.4.11), target size 2.5.8.

const faults = [];
const all = (css, root = document) => [...root.querySelectorAll(css)];
const isShown = (element) => element.checkVisibility() && !isUnseen(element) && element.closest("[inert]") === null;
const isUnseen = (element) => element.closest(".unseen, .skip:not(:focus)") !== null || clipped(element);
const clipped = (element) => getComputedStyle(element).clipPath === "inset(50%)";
const named = (element) => `<${element.tagName.toLowerCase()}${element.id && ` id=${element.id}`}${element.className.baseVal === undefined && element.className && ` class="${element.className}"`}>`;

function nameOf(element) {
  const by = (element.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent ?? "");
  const label = [...(element.labels ?? [])].map((one) => one.textContent);
  return [element.getAttribute("aria-label"), ...by, ...label, element.textContent, element.title].find((text) => text?.trim())?.trim() ?? "";
}

// ---- names, labels, references

for (const element of all("button, a[href], input, textarea, select, [role=region], [role=meter], [role=log]")) {
  if (nameOf(element) === "") {
    faults.push(`${named(element)} has no name`);
  }
}
for (const element of all("input, textarea, select")) {
  if (element.labels.length === 0) {
    faults.push(`${named(element)} has no label`);
  }
}
for (const svg of all("svg")) {
  if (svg.getAttribute("aria-hidden") !== "true" && svg.getAttribute("role") !== "img") {
    faults.push("an svg is neither hidden nor named");
  }
}
for (const name of ["aria-labelledby", "aria-describedby", "aria-controls", "for"]) {
  for (const element of all(`[${name}]`)) {
    for (const id of element.getAttribute(name).split(" ")) {
      if (document.getElementById(id) === null) {
        faults.push(`${named(element)} names #${id}, which is not there`);
      }
    }
  }
}
for (const [id, count] of Map.groupBy(all("[id]"), (element) => element.id)) {
  if (count.length > 1) {
    faults.push(`#${id} stands ${count.length} times`);
  }
}
for (const element of all("[tabindex]")) {
  if (element.tabIndex > 0) {
    faults.push(`${named(element)} changes the order of the keyboard`);
  }
}

// ---- structure

if (document.documentElement.lang === "" || document.title === "") {
  faults.push("the page has no language or no title");
}
for (const [css, wanted] of [["main", 1], ["h1", 1], ["[role=alert]", 1], ["[role=log][aria-live=polite]", 1], ["[role=status]", 1]]) {
  if (all(css).length !== wanted) {
    faults.push(`${all(css).length} × ${css} instead of ${wanted}`);
  }
}
let level = 0;
for (const heading of all("h1, h2, h3, h4")) {
  const next = Number(heading.tagName[1]);
  if (heading.checkVisibility() && next > level + 1) {
    faults.push(`${named(heading)} skips a level`);
  }
  level = heading.checkVisibility() ? next : level;
}

// ---- contrast

const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
function rgba(color) {
  canvas.clearRect(0, 0, 1, 1);
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
}
function over(front, back) {
  return [0, 1, 2].map((n) => front[n] * front[3] + back[n] * (1 - front[3])).concat(1);
}
function ground(element) {
  const color = rgba(getComputedStyle(element).backgroundColor);
  const parent = element.parentElement;
  return color[3] === 1 ? color : over(color, parent === null ? [255, 255, 255, 1] : ground(parent));
}
function luminance(color) {
  const [r, g, b] = color.map((value) => value / 255).map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
function ratio(one, other) {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}
function check(element, color, least, what) {
  const back = ground(element);
  const got = ratio(over(rgba(color), back), back);
  if (got < least) {
    faults.push(`${named(element)} ${what}: contrast ${got.toFixed(2)} < ${least}`);
  }
}
const isDisabled = (element) => element.closest("[aria-disabled=true], :disabled") !== null;
let texts = 0;
for (const element of all("body *")) {
  const hasText = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim() !== "");
  if (!hasText || !isShown(element) || isDisabled(element) || element.closest("noscript, script") !== null) {
    continue;
  }
  texts += 1;
  const style = getComputedStyle(element);
  const size = Number.parseFloat(style.fontSize);
  const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  check(element, style.color, isLarge ? 3 : 4.5, `text "${element.textContent.trim().slice(0, 30)}"`);
}
if (texts < 3) {
  faults.push(`only ${texts} texts were found: the audit itself is wrong`);
}
for (const box of all("textarea, input")) {
  if (isShown(box)) {
    check(box, getComputedStyle(box, "::placeholder").color, 4.5, "placeholder");
  }
}
for (const icon of all("button svg")) {
  if (isShown(icon) && !isDisabled(icon)) {
    check(icon.closest("button"), getComputedStyle(icon).color, 3, "icon");
  }
}

// ---- targets and overflow

for (const element of all("button, a[href], input, textarea")) {
  const box = element.getBoundingClientRect();
  if (isShown(element) && (box.width < 24 || box.height < 24)) {
    faults.push(`${named(element)} is ${box.width} × ${box.height} px small`);
  }
}
// The window itself: `innerWidth` grows with what overflows, since phones zoom out then.
const width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > width) {
  faults.push(`the page is ${document.documentElement.scrollWidth} px wide in a window of ${width}`);
}
for (const element of all("button, textarea, input, .words, .alert, .brand, .connection")) {
  const box = element.getBoundingClientRect();
  if (isShown(element) && (box.left < -0.5 || box.right > width + 0.5)) {
    faults.push(`${named(element)} reaches out of the window`);
  }
}
for (const element of all("button, .connection, .brand")) {
  if (isShown(element) && element.scrollWidth > element.clientWidth + 1) {
    faults.push(`${named(element)} cuts its words off`);
  }
}

return faults;
