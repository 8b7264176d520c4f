// scratch
import { afterAll, beforeAll, expect, test } from 'vitest';
import { chunk, countUsage, answerShort } from './scripted-upstream.ts';
import { buildChat, pause, type ScriptedGateway, startScriptedGateway } from './scripted-gateway.ts';
let scripted: ScriptedGateway;
beforeAll(async () => { scripted = await startScriptedGateway(); });
afterAll(() => scripted.stop());
test('second keepalive', async () => {
  scripted.upstream.play((e) => { e.head(200); e.write(chunk({ content: '1 ', usage: countUsage(1) })); });
  const a = await scripted.chat(buildChat('counted', true));
  const t0 = Date.now();
  await a.waitFor(/keep-alive/);
  console.log('first', Date.now() - t0);
  const left = a.leave('close');
  const [e] = scripted.upstream.find(a.requestId);
  const r = await Promise.race([e!.aborted, pause(15000)]);
  console.log('aborted after', r === undefined ? 'NOT in 15s' : Number(r) - left);
}, 100000);
test('before headers', async () => {
  for (const stream of [false, true]) for (const how of ['reset', 'close'] as const) {
    let ex: any;
    scripted.upstream.play(async (e) => { ex = e; await pause(8000); if (!e.isGone()) answerShort(e); });
    const c = scripted.startChat(buildChat('counted', stream));
    while (!ex) await pause(5);
    await pause(100);
    const left = c.leave(how);
    const r = await Promise.race([ex.aborted, pause(9000)]);
    await pause(300);
    const id = ex.headers['x-request-id'];
    console.log(stream, how, r === undefined ? 'never' : Number(r) - left, JSON.stringify(await scripted.readReceipt(id)));
    ex = undefined;
  }
  console.log(scripted.logLines.join('\n'));
}, 100000);
