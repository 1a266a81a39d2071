#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens HTML reports in a headless Chromium.

    browser.py MAKE_PAGES FOLDER [--screenshots] [PAGE.html ...]

MAKE_PAGES writes its pages into FOLDER; PAGE.html are further ones. Each page is opened 400 and 1600 px wide, light and
dark. It fails when a page overflows its width, writes to the console, asks for anything beyond itself, has text
that is too faint for its background, an SVG without a text alternative, or an id twice. Exit status 77: no Chromium, or one that does not
run here.
"""
import html
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
WIDTHS = (400, 1600)

# Runs inside the page; what it finds goes into the title of a copy of the page, which --dump-dom prints.
PROBE = """
<script>
window.problems = [];
window.onerror = (m) => { problems.push('error: ' + m); };
document.addEventListener('securitypolicyviolation', (e) => problems.push('asks for ' + e.blockedURI));
window.addEventListener('load', () => {
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) {
    let widest = null;
    for (const e of document.querySelectorAll('body *'))
      if (e.getBoundingClientRect().right > root.clientWidth + 1 && !e.closest('.scroll') && !widest) widest = e;
    problems.push('overflows: ' + root.scrollWidth + ' > ' + root.clientWidth + ' by ' +
                  (widest ? widest.outerHTML.slice(0, 120) : '?'));
  }
  const ids = new Set();
  for (const e of document.querySelectorAll('[id]')) {
    if (ids.has(e.id)) problems.push('id twice: ' + e.id);
    ids.add(e.id);
  }
  for (const svg of document.querySelectorAll('svg')) {
    if (svg.getAttribute('role') !== 'img' || !svg.querySelector('title'))
      problems.push('an SVG without a text alternative');
    const box = svg.getBoundingClientRect();
    if (box.width < 1 || box.height < 1) problems.push('an SVG without a size');
  }
  for (const e of document.querySelectorAll('.scroll'))
    if (e.tabIndex !== 0 || !e.getAttribute('aria-label')) problems.push('a scrolled region out of the keyboard\\'s reach');
  const parse = (c) => (c.match(/[\\d.]+/g) || [0, 0, 0]).map(Number);
  const light = (c) => {
    const [r, g, b] = parse(c).map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (e) => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor, v = parse(c);
      if (v.length < 4 || v[3] > 0) return c;
    }
    return 'rgb(255,255,255)';
  };
  const faint = new Set();
  for (const e of document.querySelectorAll('body *')) {
    if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
    if (e.closest('title,desc,script,style')) continue;
    const style = getComputedStyle(e), color = e.closest('svg') ? style.fill : style.color;
    const a = light(color), b = light(behind(e)), ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faint.add(e.tagName + '.' + e.getAttribute('class') + ' ' + ratio.toFixed(2));
  }
  for (const f of faint) problems.push('faint text: ' + f);
  document.title = 'PROBE' + JSON.stringify({problems: problems, height: root.scrollHeight,
    dark: matchMedia('(prefers-color-scheme: dark)').matches, width: root.clientWidth}) + 'END';
});
</script>
"""


def chromium(*arguments):
    with tempfile.TemporaryDirectory(prefix="synccount-browser-") as profile:
        command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                   "--no-first-run", "--disable-extensions", "--disable-component-update", "--disable-background-networking",
                   f"--user-data-dir={profile}", "--enable-logging=stderr", *arguments]
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        except subprocess.TimeoutExpired as late:
            return subprocess.CompletedProcess(command, 124, "", f"no answer in 120 s: {late.stderr!r}")


def framed(page, probe):
    """The report as it is put into a frame: nothing beyond itself may be loaded."""
    policy = '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src \'unsafe-inline\'; ' \
             'script-src \'unsafe-inline\'; img-src data:">'
    return page.read_text(encoding="utf-8").replace("<head>", "<head>" + policy + (PROBE if probe else ""), 1)


def look(pages, dark, folder):
    """Every page at every width, in frames of one document: windows have a least width, frames have none."""
    keys = [(page, width) for page in pages for width in WIDTHS]
    documents = json.dumps([framed(page, True) for page, _ in keys]).replace("</", "<\\/")
    outer = folder / "frames.html"
    outer.write_text(f"""<!DOCTYPE html><html><body style="margin:0"><script>
const documents = {documents}, widths = {json.dumps([width for _, width in keys])}, found = {{}};
documents.forEach((text, i) => {{
  const f = document.createElement('iframe');
  f.style = 'border:0;height:3000px;width:' + widths[i] + 'px';
  f.srcdoc = text;
  document.body.append(f);
  const poll = setInterval(() => {{
    const t = f.contentDocument && f.contentDocument.title;
    if (!t || !t.startsWith('PROBE')) return;
    found[i] = JSON.parse(t.slice(5, -3));
    clearInterval(poll);
    document.title = 'FOUND' + JSON.stringify(found) + 'END';
  }}, 20);
}});
</script></body></html>""", encoding="utf-8")
    result = chromium("--window-size=1700,3000", f"--blink-settings=preferredColorScheme={0 if dark else 1}",
                      "--virtual-time-budget=60000", "--dump-dom", outer.as_uri())
    outer.unlink()
    title = html.unescape(result.stdout.partition("<title>FOUND")[2].partition("END</title>")[0])
    found = json.loads(title) if title else {}
    console = [line for line in result.stderr.splitlines() if ":CONSOLE" in line]
    answers = {}
    for i, key in enumerate(keys):
        one = found.get(str(i))
        problems = list(one["problems"]) if one else ["it did not load: " + result.stderr.strip()[-300:]]
        if one and one["width"] != key[1]:
            problems.append(f"it was {one['width']} px wide")
        if one and one["dark"] != dark:
            problems.append("the colour scheme was not taken")
        answers[key] = one, problems
    return answers, console


def screenshot(page, width, dark, height, folder):
    inner, outer = folder / "inner.html", folder / "outer.html"
    inner.write_text(framed(page, False), encoding="utf-8")
    outer.write_text(f'<!DOCTYPE html><html><body style="margin:0"><iframe style="border:0;width:{width}px;height:{height}px" '
                     f'src="{inner.name}"></iframe></body></html>', encoding="utf-8")
    target = folder / f"{page.stem}-{width}-{'dark' if dark else 'light'}.png"
    chromium(f"--window-size={max(width, 500)},{height}", f"--blink-settings=preferredColorScheme={0 if dark else 1}",
             f"--screenshot={target}", outer.as_uri())
    inner.unlink()
    outer.unlink()
    return target


def main():
    arguments = [a for a in sys.argv[1:] if a != "--screenshots"]
    if len(arguments) < 2:
        sys.exit(__doc__)
    if not CHROMIUM:
        print("SKIP: no Chromium here (Debian: apt-get install chromium)")
        sys.exit(77)
    first = chromium("--dump-dom", "data:text/html,<title>here</title>")
    if "<title>here</title>" not in first.stdout:
        print(f"SKIP: {CHROMIUM} does not run here: {first.stderr.strip()[-300:]}")
        sys.exit(77)
    folder = pathlib.Path(arguments[1]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([arguments[0], str(folder)], check=True)
    pages = sorted(folder.glob("*.html")) + [pathlib.Path(p).resolve() for p in arguments[2:]]
    failed = 0
    for dark in (False, True):
        answers, console = look(pages, dark, folder)
        for line in console:
            failed += 1
            print(f"FAIL in the console: {line}")
        for (page, width), (found, problems) in answers.items():
            name = f"{page.stem} at {width} px, {'dark' if dark else 'light'}"
            for problem in problems:
                failed += 1
                print(f"FAIL {name}: {problem}")
            if not problems:
                print(f"PASS {name}")
            if found and "--screenshots" in sys.argv:
                print("  " + str(screenshot(page, width, dark, min(found["height"], 12000), folder)))
    sys.exit(1 if failed or not pages else 0)


main()
