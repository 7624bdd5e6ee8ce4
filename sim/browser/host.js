// Runs the program's WebAssembly module, in node, in a page and in its workers: WASI's calls over
// files that lie in memory. No file, clock or network of the machine is touched but the time.
'use strict';

/// A folder is a Map of names, a file {data, size}, a link {link}.
class StepcastHost {
  constructor(module, {environment = {}, clock = () => Date.now()} = {}) {
    this.module = module;
    this.root = new Map();
    this.environment = {PWD: '/', ...environment};
    this.clock = clock;
    this.link('/proc/self/exe', '/stepcast/stepcast');
    this.write('/stepcast/stepcast', '');
  }

  parts(path) {
    const out = [];
    for (const part of path.split('/')) {
      if (part === '..') out.pop();
      else if (part !== '' && part !== '.') out.push(part);
    }
    return out;
  }
  find(path) {
    let at = this.root;
    for (const part of this.parts(path)) {
      at = at instanceof Map ? at.get(part) : undefined;
      if (at === undefined) return undefined;
    }
    return at;
  }
  folder(path) {
    let at = this.root;
    for (const part of this.parts(path)) {
      if (!at.has(part)) at.set(part, new Map());
      at = at.get(part);
    }
    return at;
  }
  put(path, entry) {
    const parts = this.parts(path);
    this.folder(parts.slice(0, -1).join('/')).set(parts.at(-1), entry);
  }
  link(path, target) { this.put(path, {link: target}); }
  write(path, content) {
    const data = typeof content === 'string' ? new TextEncoder().encode(content) : content;
    this.put(path, {data, size: data.length});
  }
  read(path) {
    const file = this.find(path);
    return file && file.data ? file.data.subarray(0, file.size) : undefined;
  }

  /// An instance with these words as its command line.
  async start(words = ['stepcast']) {
    this.words = words;
    this.streams = {1: [], 2: []};
    this.open = new Map();
    for (const number of [0, 1, 2]) this.open.set(number, {stream: number, at: 0});
    this.open.set(3, {entry: this.root, path: '/'});
    this.instance = await WebAssembly.instantiate(this.module,
        {wasi_snapshot_preview1: this.calls()});
    this.exports = this.instance.exports;
    this.exports._initialize();
    return this;
  }
  /// What `stepcast WORDS` prints and its exit code, in an instance of its own.
  async run(words) {
    await this.start(['stepcast', ...words]);
    let code;
    try {
      code = this.exports.program();
    } catch (error) {
      if (!(error instanceof StepcastExit)) throw error;
      code = error.code;
    }
    return {code, out: this.said(1), errors: this.said(2)};
  }
  said(stream) {
    const decoder = new TextDecoder();
    return this.streams[stream].map((part) => decoder.decode(part, {stream: true})).join('') +
        decoder.decode();
  }
  /// What the session that lives in this instance answers to an exported function and words.
  ask(question, words) {
    const bytes = new TextEncoder().encode(words.map((word) => word + '\0').join(''));
    const at = this.exports.words(bytes.length);
    new Uint8Array(this.exports.memory.buffer, at, bytes.length).set(bytes);
    const length = this.exports[question]();
    if (length < 0) return undefined;
    return new TextDecoder().decode(
        new Uint8Array(this.exports.memory.buffer, this.exports.told(), length));
  }

  calls() {
    const ok = 0, bad = 8, exists = 20, invalid = 28, none = 44, unknown = 52, notFolder = 54,
        notEmpty = 55, isFolder = 31, denied = 76;
    const view = () => new DataView(this.exports.memory.buffer);
    const bytes = (at, length) => new Uint8Array(this.exports.memory.buffer, at, length);
    const text = (at, length) => new TextDecoder().decode(bytes(at, length));
    const path = (folder, at, length) => {
      const name = text(at, length);
      const from = this.open.get(folder);
      return name.startsWith('/') ? name : from.path + '/' + name;
    };
    const parent = (place) => {
      const parts = this.parts(place);
      return [this.find(parts.slice(0, -1).join('/')), parts.at(-1)];
    };
    const kind = (entry) => entry instanceof Map ? 3 : entry.link !== undefined ? 7 : 4;
    const numbers = new WeakMap();
    let counted = 1n;
    const numberOf = (entry) => {
      if (!numbers.has(entry)) numbers.set(entry, counted++);
      return numbers.get(entry);
    };
    const stat = (at, entry) => {
      bytes(at, 64).fill(0);
      if (entry.stream === undefined) view().setBigUint64(at + 8, numberOf(entry), true);
      view().setUint8(at + 16, entry.stream === undefined ? kind(entry) : 2);
      view().setBigUint64(at + 24, 1n, true);
      view().setBigUint64(at + 32, BigInt(entry.size ?? 0), true);
      return ok;
    };
    const strings = (list, pointers, buffer) => {
      for (const word of list) {
        const encoded = new TextEncoder().encode(word + '\0');
        view().setUint32(pointers, buffer, true);
        bytes(buffer, encoded.length).set(encoded);
        pointers += 4;
        buffer += encoded.length;
      }
      return ok;
    };
    const sizes = (list, count, total) => {
      view().setUint32(count, list.length, true);
      view().setUint32(total, list.reduce((sum, word) =>
          sum + new TextEncoder().encode(word).length + 1, 0), true);
      return ok;
    };
    const settings = () =>
      Object.entries(this.environment).map(([key, value]) => `${key}=${value}`);
    const blocks = function* (list, count) {
      for (let i = 0; i < count; ++i)
        yield [view().getUint32(list + 8 * i, true), view().getUint32(list + 8 * i + 4, true)];
    };
    const append = (file, at, part) => {
      if (at + part.length > file.data.length) {
        const grown = new Uint8Array(Math.max(2 * file.data.length, at + part.length, 4096));
        grown.set(file.data.subarray(0, file.size));
        file.data = grown;
      }
      file.data.set(part, at);
      file.size = Math.max(file.size, at + part.length);
    };
    const write = (file, list, count, done) => {
      let written = 0;
      for (const [at, length] of blocks(list, count)) {
        const part = bytes(at, length).slice();
        if (file.stream !== undefined) {
          this.streams[file.stream]?.push(part);
          this.heard?.(file.stream, part);
        } else {
          if (file.appends) file.at = file.entry.size;
          append(file.entry, file.at, part);
          file.at += length;
        }
        written += length;
      }
      view().setUint32(done, written, true);
      return ok;
    };
    const read = (file, list, count, from, done) => {
      let taken = 0;
      for (const [at, length] of blocks(list, count)) {
        const part = file.entry.data.subarray(from + taken,
            Math.min(from + taken + length, file.entry.size));
        bytes(at, part.length).set(part);
        taken += part.length;
        if (part.length < length) break;
      }
      view().setUint32(done, taken, true);
      return taken;
    };
    const opened = (number, call) => this.open.has(number) ? call(this.open.get(number)) : bad;
    const time = (id, precision, at) => {
      const now = id === 0 ? this.clock() : performance.now();
      view().setBigUint64(at, BigInt(Math.round(now * 1e6)), true);
      return ok;
    };

    const calls = {
      args_get: (pointers, buffer) => strings(this.words, pointers, buffer),
      args_sizes_get: (count, total) => sizes(this.words, count, total),
      environ_get: (pointers, buffer) => strings(settings(), pointers, buffer),
      environ_sizes_get: (count, total) => sizes(settings(), count, total),
      clock_time_get: time,
      clock_res_get: (id, at) => (view().setBigUint64(at, 1000n, true), ok),
      random_get: (at, length) => (crypto.getRandomValues(bytes(at, length)), ok),
      sched_yield: () => ok,
      poll_oneoff: (list, out, count, done) => {  // a wait is over at once
        for (let i = 0; i < count; ++i) {
          bytes(out + 32 * i, 32).fill(0);
          view().setBigUint64(out + 32 * i, view().getBigUint64(list + 48 * i, true), true);
          view().setUint8(out + 32 * i + 10, view().getUint8(list + 48 * i + 8));
        }
        view().setUint32(done, count, true);
        return ok;
      },
      proc_exit: (code) => { throw new StepcastExit(code); },
      fd_close: (number) => this.open.delete(number) ? ok : bad,
      fd_sync: () => ok,
      fd_datasync: () => ok,
      fd_advise: () => ok,
      fd_fdstat_get: (number, at) => opened(number, (file) => {
        bytes(at, 24).fill(0);
        view().setUint8(at, file.stream === undefined ? kind(file.entry) : 2);
        view().setBigUint64(at + 8, 0x1fffffffn, true);
        view().setBigUint64(at + 16, 0x1fffffffn, true);
        return ok;
      }),
      fd_fdstat_set_flags: () => ok,
      fd_filestat_get: (number, at) =>
          opened(number, (file) => stat(at, file.stream === undefined ? file.entry : file)),
      fd_filestat_set_size: (number, size) => opened(number, ({entry}) => {
        append(entry, Number(size), new Uint8Array());
        entry.data.fill(0, Math.min(entry.size, Number(size)));
        entry.size = Number(size);
        return ok;
      }),
      fd_prestat_get: (number, at) => {
        if (number !== 3) return bad;
        view().setUint32(at, 0, true);
        view().setUint32(at + 4, 1, true);
        return ok;
      },
      fd_prestat_dir_name: (number, at) => (bytes(at, 1).fill(47), ok),
      fd_read: (number, list, count, done) => opened(number, (file) => {
        if (file.stream !== undefined) return view().setUint32(done, 0, true), ok;
        if (file.entry instanceof Map) return isFolder;
        file.at += read(file, list, count, file.at, done);
        return ok;
      }),
      fd_pread: (number, list, count, from, done) =>
          opened(number, (file) => (read(file, list, count, Number(from), done), ok)),
      fd_write: (number, list, count, done) =>
          opened(number, (file) => write(file, list, count, done)),
      fd_seek: (number, offset, whence, at) => opened(number, (file) => {
        if (file.stream !== undefined) return 70;
        file.at = Number(offset) + [0, file.at, file.entry.size][whence];
        view().setBigUint64(at, BigInt(file.at), true);
        return ok;
      }),
      fd_tell: (number, at) => opened(number,
          (file) => (view().setBigUint64(at, BigInt(file.at), true), ok)),
      fd_readdir: (number, at, length, cookie, done) => opened(number, (file) => {
        let used = 0;
        const entries = [['.', file.entry], ['..', file.entry], ...file.entry];
        for (let i = Number(cookie); i < entries.length && used < length; ++i) {
          const name = new TextEncoder().encode(entries[i][0]);
          const record = new Uint8Array(24 + name.length), head = new DataView(record.buffer);
          head.setBigUint64(0, BigInt(i + 1), true);
          head.setBigUint64(8, numberOf(entries[i][1]), true);
          head.setUint32(16, name.length, true);
          head.setUint8(20, kind(entries[i][1]));
          record.set(name, 24);
          const fitting = record.subarray(0, length - used);
          bytes(at + used, fitting.length).set(fitting);
          used += fitting.length;
        }
        view().setUint32(done, used, true);
        return ok;
      }),
      path_open: (folder, how, at, length, flags, rights, inherited, state, out) => {
        const place = path(folder, at, length);
        let entry = this.find(place);
        if (entry?.link !== undefined) entry = this.find(entry.link);
        if (entry === undefined) {
          if (!(flags & 1)) return none;
          if (!(parent(place)[0] instanceof Map)) return none;
          this.put(place, entry = {data: new Uint8Array(), size: 0});
        } else if (flags & 4) return exists;
        if (flags & 2 && !(entry instanceof Map)) return notFolder;
        if (entry instanceof Map && rights & 64n) return isFolder;
        if (flags & 8) entry.size = 0;
        let number = 4;
        while (this.open.has(number)) ++number;
        this.open.set(number, {entry, path: place, at: 0, appends: (state & 1) !== 0});
        view().setUint32(out, number, true);
        return ok;
      },
      path_filestat_get: (folder, how, at, length, out) => {
        let entry = this.find(path(folder, at, length));
        if (how & 1 && entry?.link !== undefined) entry = this.find(entry.link);
        return entry === undefined ? none : stat(out, entry);
      },
      path_readlink: (folder, at, length, out, room, done) => {
        const entry = this.find(path(folder, at, length));
        if (entry === undefined) return none;
        if (entry.link === undefined) return invalid;
        const target = new TextEncoder().encode(entry.link).subarray(0, room);
        bytes(out, target.length).set(target);
        view().setUint32(done, target.length, true);
        return ok;
      },
      path_create_directory: (folder, at, length) => {
        const [into, name] = parent(path(folder, at, length));
        if (!(into instanceof Map)) return none;
        if (into.has(name)) return exists;
        into.set(name, new Map());
        return ok;
      },
      path_remove_directory: (folder, at, length) => {
        const [from, name] = parent(path(folder, at, length));
        if (!from?.get?.(name)) return none;
        if (!(from.get(name) instanceof Map)) return notFolder;
        if (from.get(name).size > 0) return notEmpty;
        from.delete(name);
        return ok;
      },
      path_unlink_file: (folder, at, length) => {
        const [from, name] = parent(path(folder, at, length));
        if (from?.get?.(name) instanceof Map) return isFolder;
        return from?.delete?.(name) ? ok : none;
      },
      path_rename: (folder, at, length, other, to, toLength) => {
        const [from, name] = parent(path(folder, at, length));
        const [into, newName] = parent(path(other, to, toLength));
        if (!from?.get?.(name) || !(into instanceof Map)) return none;
        into.set(newName, from.get(name));
        if (from !== into || name !== newName) from.delete(name);
        return ok;
      },
    };
    for (const {module, name} of WebAssembly.Module.imports(this.module))
      if (module === 'wasi_snapshot_preview1') calls[name] ??= () => unknown;
    return calls;
  }
}

/// The program has ended by exit().
class StepcastExit extends Error {
  constructor(code) {
    super('exit ' + code);
    this.code = code;
  }
}

if (typeof module !== 'undefined') module.exports = {StepcastHost};
