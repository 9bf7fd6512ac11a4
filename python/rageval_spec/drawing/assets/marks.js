// How claims are marked in a text: the signs of verdicts, and places.

const VERDICTS = { __proto__: null,
  supported: { sign: "✓", kind: "good", word: "supported" },
  contradicted: { sign: "✗", kind: "bad", word: "contradicted" },
  not_enough_info: { sign: "?", kind: "weak", word: "not supported" },
};

/** For each character as Python counts them, its place in the UTF-16 text; one more for the end. */
function countPoints(text) {
  const places = [];
  let at = 0;
  for (const character of text) {
    places.push(at);
    at += character.length;
  }
  places.push(at);
  return places;
}
