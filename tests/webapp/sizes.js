// What of the page is not legible as it is: words under 12 pixels and their size, what scrolls
// sideways and by how much, words of charts and chosen options that are cut and by how much.
() => {
  const round = (value) => Math.round(value * 10) / 10;
  const small = {}, wide = {}, cut = {};
  const app = document.querySelector("[data-testid=stApp]") ?? document.body;
  const width = document.documentElement.clientWidth;
  const seen = (element) =>
    element.checkVisibility({ opacityProperty: true, visibilityProperty: true })
    && !element.closest(".st-key-unseen");
  const walker = document.createTreeWalker(app, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, text = walker.currentNode.textContent.trim();
    if (!text || ["STYLE", "SCRIPT"].includes(element.tagName) || !seen(element)) continue;
    const range = document.createRange();
    range.selectNode(walker.currentNode);
    const box = range.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue;
    const scale = element instanceof SVGElement ? element.getScreenCTM() : { a: 1, b: 0 };
    const size = parseFloat(getComputedStyle(element).fontSize) * Math.hypot(scale.a, scale.b);
    if (size < 11.99) small[text.slice(0, 60)] = round(size);
  }
  for (const element of app.querySelectorAll("*")) {
    if (!seen(element)) continue;
    const style = getComputedStyle(element);
    const scrolls = ["auto", "scroll"].includes(style.overflowX);
    if (scrolls && element.scrollWidth > element.clientWidth + 1)
      wide[element.ariaLabel || element.dataset.testid || element.className] =
        element.scrollWidth - element.clientWidth;
  }
  const room = (element) => {
    // where it is not cut: within the window, and within what it lies in unless that shows the rest
    let [left, right, top, bottom, scrolled] = [0, width, -Infinity, Infinity, false];
    for (let node = element; node; node = node.parentElement) {
      const style = getComputedStyle(node), box = node.getBoundingClientRect();
      if (style.overflowX !== "visible")
        [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
      scrolled ||= ["auto", "scroll"].includes(style.overflowY);
      if (style.overflowY !== "visible" && !scrolled)
        [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
    }
    return { left, right, top, bottom };
  };
  for (const svg of app.querySelectorAll("svg.marks")) {
    if (!seen(svg)) continue;
    const inside = room(svg);
    for (const word of svg.querySelectorAll("text")) {
      const box = word.getBoundingClientRect(), text = word.textContent.trim();
      if (!text || !seen(word)) continue;
      const beyond = Math.max(inside.left - box.left, box.right - inside.right,
        inside.top - box.top, box.bottom - inside.bottom);
      if (beyond > 1 || text.includes("…")) cut[text] = round(Math.max(beyond, 0));
    }
  }
  for (const input of app.querySelectorAll("input[role=combobox]"))
    if (seen(input) && input.scrollWidth > input.clientWidth + 1)
      cut[input.value] = input.scrollWidth - input.clientWidth;
  return { small, wide, cut };
}
