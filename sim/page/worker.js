// In a Worker: the program, once for sessions and anew for each other question.
let host;

/// A line of JSON {path: bytes}, then the files one after the other.
function unpack(packed) {
  const end = packed.indexOf(10);
  let at = end + 1;
  for (const [path, size] of Object.entries(JSON.parse(new TextDecoder().decode(
      packed.subarray(0, end))))) {
    host.write(path, packed.subarray(at, at + size));
    at += size;
  }
}

/// The program's answer to words: JSON where a session knows it, else what a fresh program prints.
async function answer(words, id) {
  const told = host.ask('answer', words) ?? host.ask('refusal', words);
  if (told !== undefined) return {out: told};
  return run(words, id);
}

/// Beside the session, over the same files. What the program writes into out/ is handed back.
async function run(words, id) {
  const program = new StepcastHost(host.module);
  program.root = host.root;
  program.heard = (stream, part) => {
    if (stream === 2) postMessage({id, message: new TextDecoder().decode(part)});
  };
  host.folder('out');
  const {code, out, errors} = await program.run(words);
  const files = {};
  const take = (folder) => {
    for (const [name, entry] of folder ?? [])
      if (entry instanceof Map) take(entry);
      else files[name] = entry.data.slice(0, entry.size);
  };
  take(host.root.get('out'));
  host.root.delete('out');
  return {code, out, errors, files};
}

onmessage = async ({data: {id, kind, words, module, files, path, text}}) => {
  try {
    let told;
    if (kind === 'start') {
      host = new StepcastHost(module);
      unpack(files);
      await host.start();
    } else if (kind === 'write') host.write(path, text);
    else if (kind === 'answer') told = await answer(words, id);
    else if (kind === 'refusal') told = host.ask('refusal', words);
    else if (kind === 'run') told = await run(words, id);
    postMessage({id, told});
  } catch (error) {
    postMessage({id, failure: String(error)});
    if (kind !== 'start') await host.start();  // what broke the session ends with it
  }
};
