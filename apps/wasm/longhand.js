"use strict";

// Starts the WebAssembly module. Returns a function that sends one request to the module and returns
// its result (apps/wasm/module.cpp). The further bytes of a request are the function's second argument.
// The function also works in a worker and in node, so it uses no name of this file.
async function openLonghand(bytes) {
  const refused = 52;  // ENOSYS: the module has no files
  let memory = null;
  const at = () => new DataView(memory.buffer);
  const functions = {
    args_sizes_get: (count, size) => (at().setUint32(count, 0, true), at().setUint32(size, 0, true), 0),
    environ_sizes_get: (count, size) => (at().setUint32(count, 0, true), at().setUint32(size, 0, true), 0),
    args_get: () => 0,
    environ_get: () => 0,
    clock_time_get: (clock, precision, to) => {
      at().setBigUint64(to, BigInt(Math.round(performance.now() * 1e6)), true);
      return 0;
    },
    fd_write: (file, parts, count, written) => {
      let text = "", size = 0;
      for (let i = 0; i < count; ++i) {
        const from = at().getUint32(parts + 8 * i, true), bytes = at().getUint32(parts + 8 * i + 4, true);
        text += new TextDecoder().decode(new Uint8Array(memory.buffer, from, bytes));
        size += bytes;
      }
      console.log(text);
      at().setUint32(written, size, true);
      return 0;
    },
    proc_exit: status => { throw new Error("the module ended with status " + status); },
  };
  const module = await WebAssembly.compile(bytes);
  const imports = {};
  for (const {module: from, name} of WebAssembly.Module.imports(module)) {
    (imports[from] ??= {})[name] = functions[name] ?? (() => refused);
  }
  const {exports} = await WebAssembly.instantiate(module, imports);
  memory = exports.memory;
  exports._initialize();
  return (request, further = new Uint8Array(0)) => {
    const text = new TextEncoder().encode(JSON.stringify(request) + "\0"), size = text.length + further.length;
    const begin = exports.longhand_request(size), place = new Uint8Array(memory.buffer, begin, size);
    place.set(text);
    place.set(further, text.length);
    const from = exports.longhand_answer(), all = new Uint8Array(memory.buffer);
    const result = JSON.parse(new TextDecoder().decode(all.subarray(from, all.indexOf(0, from))));
    if (result.error !== undefined) throw new Error(result.error);
    return result;
  };
}

// The bytes of the module for this engine and processor: the one with fused multiply-adds if they have
// them, otherwise the plain one. Each is compressed with gzip and encoded in base64.
async function unpackLonghand(packed) {
  const unpack = async text => {
    const bytes = Uint8Array.from(atob(text), character => character.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };
  const fused = await unpack(packed.fused);
  const has = WebAssembly.validate(fused) && (await openLonghand(fused))({do: "kernels"}).kernels === "simd128";
  return has ? fused : unpack(packed.plain);
}

// A copy of the module in a worker of its own. ask(request) returns a promise of the result. The
// worker answers requests in order.
class LonghandWorker {
  constructor(bytes) {
    const main = async () => {
      let opened;
      onmessage = async ({data}) => {
        try {
          opened ??= openLonghand(data.bytes);
          const answer = await opened;
          postMessage({number: data.number, result: data.request ? answer(data.request, data.further) : null});
        } catch (error) {
          postMessage({number: data.number, error: error.message});
        }
      };
    };
    const code = `"use strict";\n${openLonghand}\n(${main})();`;
    this.address = URL.createObjectURL(new Blob([code], {type: "text/javascript"}));
    this.worker = new Worker(this.address);
    this.waiting = new Map();
    this.number = 0;
    this.worker.onmessage = ({data}) => {
      const {resolve, reject} = this.waiting.get(data.number);
      this.waiting.delete(data.number);
      if (data.error === undefined) resolve(data.result);
      else reject(new Error(data.error));
    };
    this.ready = this.send({bytes});
  }

  send(message) {
    return new Promise((resolve, reject) => {
      this.waiting.set(++this.number, {resolve, reject});
      this.worker.postMessage({...message, number: this.number});
    });
  }

  ask(request, further) { return this.send({request, further}); }

  close() {
    this.worker.terminate();
    URL.revokeObjectURL(this.address);
  }
}

if (typeof module !== "undefined") module.exports = {openLonghand, unpackLonghand};
