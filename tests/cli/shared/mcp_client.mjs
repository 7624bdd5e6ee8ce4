// Calls every tool of `stepcast mcp` through the reference client, which validates each answer
// against the tool's output schema itself.
//   client.mjs STEPCAST SOURCE FOLDER CALLS
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {Client} from '@modelcontextprotocol/sdk/client/index.js';
import {StdioClientTransport} from '@modelcontextprotocol/sdk/client/stdio.js';

const [program, source, folder, calls] = process.argv.slice(2);
const transport =
    new StdioClientTransport({command: program, args: ['mcp', '--folder', folder]});
const client = new Client({name: 'stepcast-test', version: '1'});
await client.connect(transport);
const {name, version} = client.getServerVersion();
console.log(`${name} ${version}: ${client.getInstructions().length} letters of instructions`);

const small = {model: 'llama3-8b', gpu: 'h100', nodes: 1, data: 'zero3', 'local-batch': 1};
const good = {
  run: small,
  search: {model: 'llama2-7b', gpu: 'h100', nodes: 1, 'global-batch': 16, limit: 8},
  why: small,
  sweep: {words: [`${source}/scenarios/collectives.toml`]},
  compare: {...small, 'what-if': ['gpu.memory_bandwidth x2']},
  collective: {words: ['all_reduce'], gpu: 'h100', nodes: 2, bytes: '64MiB', explain: true},
  goodput: {words: [`${source}/scenarios/failures_llama3.toml`]},
  design: {words: [`${source}/scenarios/design/llama3-70b-2t.toml`], time: '3s'},
  show: {words: ['gpus']},
  explain: {words: ['mfu']},
};
const {tools} = await client.listTools();
assert.deepEqual(tools.map((tool) => tool.name).sort(), Object.keys(good).sort());
for (const tool of tools) {
  const answer = await client.callTool({name: tool.name, arguments: good[tool.name]}, undefined,
                                       {timeout: 600000});
  assert.ok(!answer.isError, `${tool.name}: ${answer.content[0].text}`);
  assert.ok(answer.content[0].text.length > 20);
  if (tool.outputSchema) {
    assert.equal(answer.structuredContent.stepcast, version);
    assert.deepEqual(JSON.parse(answer.content[0].text), answer.structuredContent);
  }
  for (const wrong of [{nosuch: 1}, {words: ['--out=x']}, {out: '/etc/x'}]) {
    const refused = await client.callTool({name: tool.name, arguments: wrong});
    assert.ok(refused.isError, `${tool.name} takes ${JSON.stringify(wrong)}`);
    assert.ok(refused.content[0].text.length > 10);
  }
  console.log(`${tool.name}: answered, bad arguments refused with a hint`);
}
await assert.rejects(client.callTool({name: 'nosuch', arguments: {}}), /no tool/);

// A search of minutes, cancelled; the server goes on.
const cancel = new AbortController();
const long = client.callTool(
    {name: 'search',
     arguments: {model: 'llama2-70b', gpu: 'h100', nodes: 64, 'global-batch': 1024, all: true}},
    undefined, {signal: cancel.signal, timeout: 600000});
setTimeout(() => cancel.abort('enough'), 500);
await assert.rejects(long, /enough/);
await client.ping();
console.log('a search was cancelled');

const status = () => readFileSync(`/proc/${transport.pid}/status`, 'utf8');
const resident = () => Number(/VmRSS:\s+(\d+)/.exec(status())[1]);
const some = async (count) => {
  for (let i = 0; i < count; ++i)
    await client.callTool({name: 'explain', arguments: {words: ['mfu']}});
};
await some(20);
const before = resident();
await some(Number(calls));
const after = resident();
console.log(`memory: ${before} kB, after ${calls} calls ${after} kB`);
assert.ok(after - before <= 400, 'it grows');
await client.close();
