// Browser-level check: a database as a model. Open WebUI in a real Chromium in front of a Sluice: choose ask/<database>, ask, see
// the table and the answer, go on with a second question.
//
// Open WebUI must already run in front of the gateway, with a key that may read the database (OLLAMA_API_CONFIGS: see
// dev/open-webui.sh, which starts both).
// Run:  OWUI_URL=http://127.0.0.1:8077 MODEL=ask/shop QUESTION='How many customers are there?' CELL=40 [SECOND=…] [SHOT_DIR=/tmp/shots]
//       [CHROMIUM=/usr/bin/chromium] [TIMEOUT=120] [NODE_PATH_DIR=…] node open_webui_ask.mjs
// CELL is a text that a cell of the first answer's table must hold.
// Prints one line per check, exits 1 if any failed.
import { createRequire } from 'node:module';
import { mkdirSync } from 'node:fs';
import { resolve } from 'node:path';

const E = process.env;
const require = createRequire(E.NODE_PATH_DIR ? resolve(E.NODE_PATH_DIR, 'x.js') : import.meta.url);
const { chromium } = require('playwright-core');

const OWUI = (E.OWUI_URL || 'http://127.0.0.1:8077').replace(/\/$/, '');
const MODEL = E.MODEL || 'ask/shop';
const SHOTS = E.SHOT_DIR || '/tmp/owui-ask-shots';
const T = 1000 * Number(E.TIMEOUT || 120);
mkdirSync(SHOTS, { recursive: true });

let passed = 0, failed = 0, aborted = false;
async function check(name, fn) {
  if (aborted) return;
  const t0 = Date.now();
  try {
    const note = await fn();
    passed++;
    console.log(`ok   ${name} (${Date.now() - t0} ms)${note ? ' - ' + note : ''}`);
  } catch (e) {
    failed++;
    console.log(`FAIL ${name} - ${String(e.message || e).split('\n')[0].slice(0, 300)}`);
    await page.screenshot({ path: `${SHOTS}/fail-${failed}.png` }).catch(() => {});
    if (e.fatal) aborted = true;
  }
}
const must = (c, m) => { if (!c) throw new Error(m); };
const fatal = (p) => p.catch((e) => { e.fatal = true; throw e; });

const browser = await chromium.launch({
  executablePath: E.CHROMIUM || '/usr/bin/chromium', headless: true,
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
});
const ctx = await browser.newContext({ viewport: { width: 1280, height: 1000 }, locale: 'en-US' });
// Nothing may leave this machine.
await ctx.route('**/*', (r) => {
  const u = new URL(r.request().url());
  return ['127.0.0.1', 'localhost', '[::1]'].includes(u.hostname) || !u.protocol.startsWith('http') ? r.continue() : r.abort();
});
const page = await ctx.newPage();
const errors = [];
page.on('pageerror', (e) => errors.push(String(e.message)));

const INPUT = '#chat-input';
const BUBBLE = '.chat-assistant';

// The nth assistant message as Open WebUI saved it, once it is marked as done: an error is shown in the same bubble as an answer.
async function stored(nth) {
  const end = Date.now() + T;
  let m;
  do {
    const id = (page.url().match(/\/c\/([0-9a-f-]{36})/) || [])[1];
    const chat = id && await page.evaluate(async (i) => {
      const r = await fetch(`/api/v1/chats/${i}`, { headers: { authorization: `Bearer ${localStorage.token}` } });
      return r.ok ? r.json() : null;
    }, id);
    m = Object.values(chat?.chat?.history?.messages ?? {}).filter((x) => x.role === 'assistant').sort((a, b) => a.timestamp - b.timestamp)[nth];
    if (m && (m.error || m.done)) break;
    await page.waitForTimeout(300);
  } while (Date.now() < end);
  must(m, 'the chat was not saved');
  must(!m.error, `the bubble shows an error: ${JSON.stringify(m.error?.content ?? m.error)}`);
  must(m.done, 'the answer has no end');
  return m;
}

async function ask(question, nth) {
  await page.locator(INPUT).click();
  await page.keyboard.insertText(question);
  await page.keyboard.press('Enter');
  await page.locator(BUBBLE).nth(nth).waitFor({ timeout: T });
  return stored(nth);
}

await check('page loads and signs in without a password', () => fatal((async () => {
  await page.goto(OWUI + '/', { waitUntil: 'domcontentloaded', timeout: T });
  await page.locator(INPUT).waitFor({ timeout: T });
  for (const n of [/okay, let's go/i, /dismiss/i, /^close$/i]) {
    const b = page.getByRole('button', { name: n }).first();
    if (await b.isVisible().catch(() => false)) await b.click().catch(() => {});
  }
  await page.keyboard.press('Escape');
})()));

await check(`model picker offers ${MODEL}`, () => fatal((async () => {
  const btn = page.locator('button[id^="model-selector-"][id$="-button"]').first();
  await btn.click({ timeout: T });
  const item = page.locator('[role="option"], [data-value], button[aria-label]').filter({ hasText: MODEL }).first();
  await item.waitFor({ timeout: 30000 });
  await page.screenshot({ path: `${SHOTS}/1-models.png` });
  await item.click();
  await page.waitForTimeout(300);
  must((await btn.innerText()).includes(MODEL), 'picked model is not shown in the header');
})()));

await check('a question is answered with a sentence, a table and the SQL', () => fatal((async () => {
  const m = await ask(E.QUESTION || 'How many customers are there?', 0);
  const bubble = page.locator(BUBBLE).first();
  await bubble.locator('table td').first().waitFor({ timeout: 20000 });
  await page.waitForTimeout(1500); // the last of it is drawn
  await page.screenshot({ path: `${SHOTS}/2-answer.png` });
  const cells = await bubble.locator('table td').allInnerTexts();
  must(!E.CELL || cells.some((c) => c.includes(E.CELL)), `no ${E.CELL} in the cells ${JSON.stringify(cells)}`);
  must(m.content.includes('```sql'), `no SQL in ${JSON.stringify(m.content)}`);
  must((await bubble.locator('a[href]:not([href^="/"]):not([href^="mailto:"])').count()) === 0, 'a cell became a link');
  return JSON.stringify(cells.slice(0, 6));
})()));

await check('its steps are shown as thinking, apart from the answer', async () => {
  const bubble = page.locator(BUBBLE).first();
  const head = bubble.getByText(/thought|thinking/i).first();
  await head.waitFor({ timeout: 10000 });
  await head.click();
  await bubble.getByText(/Candidate/).first().waitFor({ timeout: 10000 });
  await page.screenshot({ path: `${SHOTS}/3-steps.png` });
});

await check('the chat has the question as its title: no ask was spent on it', async () => {
  const end = Date.now() + 30000;
  const first = (E.QUESTION || 'How many customers are there?').split(' ').slice(0, 2).join(' ');
  while (Date.now() < end && !(await page.title()).startsWith(first)) await page.waitForTimeout(300);
  must((await page.title()).startsWith(first), `the title is ${JSON.stringify(await page.title())}`);
});

if (E.SECOND) await check('a second question goes on from the first', async () => {
  const m = await ask(E.SECOND, 1);
  await page.waitForTimeout(1500);
  await page.screenshot({ path: `${SHOTS}/4-second.png` });
  return m.content.split('\n')[0].slice(0, 120);
});

await check('no page error', async () => must(errors.length === 0, `page error: ${errors[0]}`));

await browser.close();
console.log(`open_webui_ask: ${passed} passed, ${failed} failed${aborted ? ' (stopped at the first check the rest depends on)' : ''}`);
process.exit(failed ? 1 : 0);
