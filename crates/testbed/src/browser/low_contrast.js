// The visible texts whose contrast to the colour behind them is below WCAG AA: 4.5, or 3 for large ones.
(() => {
  const parse = (colour) => {
    const [red, green, blue, alpha = 1] = colour.match(/[\d.]+/g).map(Number);
    return { red, green, blue, alpha };
  };
  const over = (front, back) => {
    const mix = (name) => front[name] * front.alpha + back[name] * (1 - front.alpha);
    return { red: mix('red'), green: mix('green'), blue: mix('blue'), alpha: 1 };
  };
  const linear = (part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4);
  const luminance = ({ red, green, blue }) => 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
  const contrast = (one, other) => {
    const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const behind = (node) => {
    const layers = [];
    for (let box = node; box; box = box.parentElement) {
      const layer = parse(getComputedStyle(box).backgroundColor);
      if (layer.alpha > 0) layers.push(layer);
      if (layer.alpha === 1) break;
    }
    return layers.reduceRight((back, layer) => over(layer, back), { red: 255, green: 255, blue: 255, alpha: 1 });
  };
  const found = new Map();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const node = texts.currentNode.parentElement;
    const text = texts.currentNode.data.trim();
    if (!text || node.closest('script, style, svg title, svg desc') || !node.checkVisibility({ visibilityProperty: true })) continue;
    const style = getComputedStyle(node);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    const isDrawn = node.closest('svg');
    // A letter that is drawn upon a badge is on the colour of its contender, which is not a background.
    if (isDrawn && node.classList.contains('letter')) continue;
    const back = behind(isDrawn ? isDrawn.parentElement : node);
    const ratio = contrast(over(parse(isDrawn ? style.fill : style.color), back), back);
    if (ratio < (isLarge ? 3 : 4.5)) {
      const key = `${node.tagName.toLowerCase()}.${node.getAttribute('class') ?? ''} ${ratio.toFixed(2)}`;
      if (!found.has(key)) found.set(key, `${key}: ${text.slice(0, 40)}`);
    }
  }
  return [...found.values()].slice(0, 20);
})()
