"""A report as its readers have it: HTML as a parser sees it, and in headless Chromium.

  read_page.py html FILE ...             well-formed, nothing fetched, a table for every picture
  read_page.py browser CHROMIUM FILE ... offline, no console error, no request, both widths, names,
                                         Tab, focus, contrast in light and dark, print
"""
import base64
import html.parser
import json
import os
import subprocess
import sys
import tempfile

VOID = {"meta", "link", "br", "path", "rect", "img", "hr", "input", "circle", "line"}
problems = []


def check(good, what):
    if not good:
        problems.append(what)
        print("FAILED:", what)


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.path, self.open, self.ids, self.refs = path, [], [], []
        self.figures, self.pictures, self.tables, self.scripts = 0, 0, 0, 0
        self.figure_parts, self.rows, self.cells = set(), [], None
        with open(path, encoding="utf-8") as file:
            self.text = file.read()
        self.feed(self.text)
        check(not self.open, f"{path}: never closed: {self.open}")
        check(len(set(self.ids)) == len(self.ids), f"{path}: an id is there twice")

    def handle_startendtag(self, tag, attrs):
        self.attributes(tag, dict(attrs))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.attributes(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "figure":
            self.figures += 1
            self.figure_parts = set()
        if tag in ("svg", "table", "figcaption", "title"):
            self.figure_parts.add(tag)
        self.pictures += tag == "svg"
        self.tables += tag == "table"
        self.scripts += tag == "script"
        if tag == "tr":
            self.cells = []
        if tag in ("td", "th") and self.cells is not None:
            self.cells.append("")

    def handle_endtag(self, tag):
        if tag in VOID:
            return
        check(self.open and self.open[-1] == tag,
              f"{self.path}:{self.getpos()[0]}: </{tag}> closes {self.open[-1:]}")
        if self.open:
            self.open.pop()
        if tag == "figure":
            check(self.figure_parts >= {"svg", "table", "figcaption", "title"},
                  f"{self.path}:{self.getpos()[0]}: a figure has only {self.figure_parts}")
        if tag == "tr":
            self.rows.append(self.cells)
            self.cells = None

    def handle_data(self, data):
        if self.cells:
            self.cells[-1] += data

    def attributes(self, tag, attrs):
        if "id" in attrs:
            self.ids.append(attrs["id"])
        for name in ("src", "href", "srcset", "action", "data", "xlink:href"):
            if name in attrs and tag != "button":
                target = attrs[name]
                check(target.startswith("#") or target == "data:,",
                      f"{self.path}: <{tag} {name}={target}> is fetched")
        for name in attrs:
            check(not name.startswith("on"), f"{self.path}: <{tag} {name}> runs a script")


def read_html(path):
    page = Page(path)
    style = page.text[page.text.index("<style>"):page.text.index("</style>")]
    check("url(" not in style and "@import" not in style, f"{path}: the style fetches")
    check(page.scripts == 1, f"{path}: {page.scripts} scripts")
    for row in page.rows:  # the parts of the step add up to it: a law
        if row and row[0] == "all ranks" and len(row) == 11:
            shares = sum(float(cell.rstrip(" %")) for cell in row[2::2])
            check(abs(shares - 100) < 0.5, f"{path}: shares add up to {shares}")
            print(f"{path}: shares of the step add up to {shares:.2f} %")
    print(f"{path}: {page.figures} pictures, {page.tables} tables, {len(page.text) // 1000} kB")


class Browser:
    """Chrome's DevTools protocol over a pipe: messages end with a zero byte."""

    def __init__(self, program, folder):
        to_browser, self.to = os.pipe()
        self.back, from_browser = os.pipe()

        def pipes():
            os.dup2(to_browser, 13)
            os.dup2(from_browser, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)

        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
             "--disable-component-update", f"--user-data-dir={folder}",
             "--remote-debugging-pipe", "about:blank"],
            preexec_fn=pipes, close_fds=False, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.last, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target,
                                 flatten=True)["sessionId"]

    def message(self):
        while b"\0" not in self.buffer:
            more = os.read(self.back, 1 << 20)
            if not more:
                raise SystemExit("FAILED: the browser ended")
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.last += 1
        request = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self.to, data):]
        while True:
            answer = self.message()
            if answer.get("id") == self.last:
                if "error" in answer:
                    raise SystemExit(f"FAILED: {method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait(self, method):
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.message())

    def navigate(self, url):
        self.call("Page.navigate", url=url)

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise SystemExit(f"FAILED: {result['exceptionDetails']}")
        return result["result"].get("value")

    def close(self):
        try:
            self.call("Browser.close")
        except SystemExit:
            pass
        self.process.wait(timeout=20)


# Of every text that is seen its contrast with the background below it (WCAG 2.1, 1.4.3).
CONTRAST = """(() => {
const parse = c => { const m = c.match(/[\\d.]+/g).map(Number); return m.length > 3 ? m : [...m, 1]; };
const light = c => { const f = v => { v /= 255; return v <= .03928 ? v / 12.92
  : Math.pow((v + .055) / 1.055, 2.4); };
  return .2126 * f(c[0]) + .7152 * f(c[1]) + .0722 * f(c[2]); };
const ground = e => { for (; e; e = e.parentElement) {
  const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > .99) return c; }
  return matchMedia('(prefers-color-scheme: dark)').matches ? [0, 0, 0] : [255, 255, 255]; };
let least = 99, where = '', seen = 0;
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const e = walk.currentNode.parentElement;
  if (!walk.currentNode.data.trim() || e.closest('script,style,title')) continue;
  if (e.getClientRects().length == 0) continue;
  const style = getComputedStyle(e);
  const ink = parse(e.ownerSVGElement ? style.fill : style.color);
  const a = light(ink), b = light(ground(e));
  const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  ++seen;
  if (contrast < least) { least = contrast; where = walk.currentNode.data.trim().slice(0, 40); }
}
return {least, where, seen}; })()"""

CONTROLS = """(() => { let n = 0;
for (const e of document.querySelectorAll('a[href],button,summary,[tabindex="0"]'))
  if (e.checkVisibility()) e.dataset.control = n++; else delete e.dataset.control;
return n; })()"""

FOCUS = """(() => { const e = document.activeElement, s = getComputedStyle(e);
return [e.dataset.control ?? null, s.outlineStyle != 'none' && parseFloat(s.outlineWidth) >= 2]; })()"""


def check_widths(browser, path):
    for width in (400, 1400):
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900,
                     deviceScaleFactor=1, mobile=False)
        over = browser.value(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth")
        check(over <= 0, f"{path}: {over} px wider than {width} px")
        drawn = browser.value("[...document.querySelectorAll('figure')].every(f => {"
                              "const r = f.querySelector('svg').getBoundingClientRect();"
                              "return r.width > 100 && r.height > 20 && "
                              "f.querySelector('table').rows.length > 1; })")
        check(drawn, f"{path}: a picture or its table is not there at {width} px")
        if width == 400:
            cut = browser.value("[...document.querySelectorAll('.cards')].filter("
                                "t => t.checkVisibility() && t.scrollWidth > t.clientWidth + 1)"
                                ".map(t => t.ariaLabel || t.getAttribute('aria-label')).join()")
            check(cut == "", f"{path}: cut at {width} px: {cut}")
        else:
            narrow = browser.value("[...document.querySelectorAll('figure svg')].filter(s => "
                                   "s.checkVisibility() && s.getBoundingClientRect().width < "
                                   "0.95 * document.querySelector('main').clientWidth).length")
            check(narrow == 0, f"{path}: {narrow} pictures leave the page's width unused")


def check_names(browser, path):
    nodes = browser.call("Accessibility.getFullAXTree")["nodes"]
    images = [n for n in nodes if n.get("role", {}).get("value") in ("image", "img")]
    pictures = browser.value("document.querySelectorAll('svg').length")
    check(len(images) == pictures, f"{path}: {len(images)} of {pictures} pictures are told")
    for node in nodes:
        if node.get("role", {}).get("value") in ("image", "img", "button", "link",
                                                 "DisclosureTriangle", "region"):
            check(node.get("name", {}).get("value", "").strip(),
                  f"{path}: a {node['role']['value']} has no name")
    return pictures


def reached_by_tab(browser, path, controls):
    """Of so many, counted as CONTROLS does, those that Tab reaches, each of them outlined."""
    browser.value("document.activeElement.blur()")
    reached = set()
    for _ in range(controls + 5):
        for kind in ("rawKeyDown", "keyUp"):
            browser.call("Input.dispatchKeyEvent", type=kind, key="Tab", code="Tab",
                         windowsVirtualKeyCode=9)
        control, outlined = browser.value(FOCUS)
        if control is not None:
            check(outlined, f"{path}: control {control} is focused unseen")
            reached.add(control)
    return reached


def check_tab(browser, path):
    controls = browser.value(CONTROLS)
    reached = reached_by_tab(browser, path, controls)
    check(len(reached) == controls, f"{path}: Tab reaches {len(reached)} of {controls} controls")
    return controls


def check_contrast(browser, path):
    least = 99
    for scheme in ("light", "dark"):
        browser.call("Emulation.setEmulatedMedia",
                     features=[{"name": "prefers-color-scheme", "value": scheme}])
        found = browser.value(CONTRAST)
        check(found["seen"] > 10 and found["least"] >= 4.5,
              f"{path}: contrast {found['least']:.2f} in {scheme} of '{found['where']}'")
        least = min(least, found["least"])
    return least


def read_in_browser(browser, path):
    browser.events.clear()
    browser.call("Page.navigate", url="file://" + os.path.abspath(path))
    browser.wait("Page.loadEventFired")
    check(browser.value("typeof hacked") == "undefined", f"{path}: a text ran as a script")
    check_widths(browser, path)
    pictures = check_names(browser, path)
    check_tab(browser, path)
    browser.value("document.querySelectorAll('details').forEach(d => d.open = true)")
    check_widths(browser, path)
    controls = check_tab(browser, path)
    contrast = check_contrast(browser, path)
    pdf = base64.b64decode(browser.call("Page.printToPDF")["data"])
    check(pdf.startswith(b"%PDF"), f"{path}: cannot be printed")
    for event in browser.events:
        method, what = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            url = what["request"]["url"]
            check(url.startswith("data:") or url == "file://" + os.path.abspath(path),
                  f"{path}: asks for {url}")
        if method == "Runtime.exceptionThrown":
            check(False, f"{path}: {what['exceptionDetails']}")
        if method in ("Runtime.consoleAPICalled", "Log.entryAdded"):
            entry = what.get("entry", what)
            check(entry.get("level", entry.get("type")) not in ("error", "warning"),
                  f"{path}: console: {entry}")
    print(f"{path}: {pictures} pictures named, {controls} controls by Tab, contrast {contrast:.2f}")


def main():
    kind, files = sys.argv[1], sys.argv[2:]
    if kind == "html":
        for path in files:
            read_html(path)
    else:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            browser = Browser(files[0], folder)
            for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
                browser.call(domain + ".enable")
            browser.call("Network.emulateNetworkConditions", offline=True, latency=0,
                         downloadThroughput=-1, uploadThroughput=-1)
            for path in files[1:]:
                read_in_browser(browser, path)
            browser.close()
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
