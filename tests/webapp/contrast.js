// Words of the page whose contrast with what lies below them is under 4.5, by their ratio.
() => {
  const parse = (text) => {
    const numbers = (text.match(/[\d.]+/g) || []).map(Number);
    return text.startsWith("rgb") ? [...numbers.slice(0, 3), numbers[3] ?? 1] : null;
  };
  const over = (top, below) =>
    [0, 1, 2].map((i) => top[i] * top[3] + below[i] * (1 - top[3])).concat(1);
  const luminance = (color) => {
    const [r, g, b] = color.slice(0, 3).map((value) => {
      const share = value / 255;
      return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = (element) => {
    // of an SVG what is drawn below its middle, else the backgrounds of what it lies in
    let found = [];
    if (element instanceof SVGElement) {
      const box = element.getBoundingClientRect();
      const drawn = [...element.ownerSVGElement.querySelectorAll("path")].filter((path) => {
        const own = path.getBoundingClientRect();
        const style = getComputedStyle(path);
        return own.left <= box.left && own.right >= box.right && own.top <= box.top
          && own.bottom >= box.bottom && style.fill !== "none" && +style.opacity > 0;
      });
      found = drawn.map((path) => {
        const style = getComputedStyle(path);
        const color = parse(style.fill) || [0, 0, 0, 0];
        return [...color.slice(0, 3), color[3] * style.fillOpacity * style.opacity];
      }).reverse();
    }
    for (let node = element; node; node = node.parentElement)
      found.push(parse(getComputedStyle(node).backgroundColor) || [0, 0, 0, 0]);
    return found.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  const poor = {};
  const app = document.querySelector("[data-testid=stApp]");
  const walker = document.createTreeWalker(app, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, element = node.parentElement;
    const seen = { opacityProperty: true, visibilityProperty: true };
    if (!node.textContent.trim() || ["STYLE", "SCRIPT"].includes(element.tagName)) continue;
    if (!element.checkVisibility(seen) || element.closest("[disabled], .st-key-unseen")) continue;
    if (element.closest("[data-testid=stSlider]")) continue;
    const range = document.createRange();
    range.selectNode(node);
    const box = range.getBoundingClientRect();
    if (box.width < 2 || box.height < 2) continue;
    const style = getComputedStyle(element), below = ground(element);
    let color = parse(element instanceof SVGElement ? style.fill : style.color);
    if (!color) continue;
    const factor = +(style.filter.match(/brightness\(([\d.]+)\)/) || [0, 1])[1];
    color = color.map((value, i) => (i < 3 ? Math.min(255, value * factor) : value));
    for (let parent = element; parent; parent = parent.parentElement)
      color[3] *= +getComputedStyle(parent).opacity;
    const shown = over(color, below);
    const [light, dark] = [luminance(shown), luminance(below)].sort((a, b) => b - a);
    const ratio = (light + 0.05) / (dark + 0.05);
    if (ratio < 4.5) poor[node.textContent.trim().slice(0, 60)] = ratio.toFixed(2);
  }
  return poor;
}
