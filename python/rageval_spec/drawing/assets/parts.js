// Reads the parts of the page's data: gzipped JSON in base64, in the page itself or in scripts beside it.

const parts = new Map();
const awaited = new Map();
const MOST_PARTS = 60;

async function unpack(base64) {
  const bytes = Uint8Array.fromBase64 ? Uint8Array.fromBase64(base64) : Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

/** A part of the data by name; those used last are kept. */
function readPart(part) {
  const kept = parts.get(part) ?? unpackPart(part);
  parts.delete(part);
  parts.set(part, kept);
  if (parts.size > MOST_PARTS) parts.delete(parts.keys().next().value);
  return kept;
}

function unpackPart(part) {
  const inside = document.querySelector(`script[data-part="${part}"]`);
  if (inside) return unpack(inside.textContent);
  return new Promise((resolve, reject) => {
    const script = el("script", { src: `parts/${part}.js` });
    awaited.set(part, (base64) => {
      script.remove();
      resolve(unpack(base64));
    });
    script.addEventListener("error", () => reject(new Error(`parts/${part}.js could not be read`)));
    document.head.append(script);
  });
}

window.ragevalPart = (part, base64) => awaited.get(part)?.(base64);
