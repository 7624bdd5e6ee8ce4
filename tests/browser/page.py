"""stepcast.html in a browser: python3 page.py BROWSER STEPCAST PAGE [FOLDER_FOR_PICTURES]

Chromium tries all of it; Firefox, another engine, that it answers."""
import base64, json, os, re, shlex, statistics, subprocess, sys, tempfile, time, urllib.parse

from firefox import Firefox
from read_page import CONTROLS, Browser, check, check_contrast, problems, reached_by_tab

# Dense models and experts, three precisions, long sequences, refusals of rules and of memory.
SCENARIOS = """
--model llama3-8b --gpu h100 --gpus 64 --data zero3 --local-batch 1
--model llama3-8b --gpu h100 --gpus 64 --data zero3 --local-batch 1 --tokens 2T --price '2.5 USD/h'
--model llama3-8b --gpu h100 --gpus 8 --local-batch 2 --framework megatron-core --data zero1
--model llama3-70b --gpu h100 --gpus 256 --tensor 8 --pipeline 4 --data zero1 --global-batch 256
--model llama3-70b --gpu h100 --gpus 128 --tensor 8 --pipeline 4 --virtual-stages 5 --data zero1 --global-batch 128
--model llama3-70b --gpu h100 --gpus 64 --pipeline 8 --tensor 8 --data zero1 --global-batch 64
--model llama3-405b --gpu gb200 --gpus 576 --tensor 8 --pipeline 9 --data zero1 --global-batch 72
--model llama3-405b --gpu b200 --gpus 1024 --tensor 8 --pipeline 16 --global-batch 256
--model mixtral-8x7b --gpu h100 --gpus 64 --framework megatron-core --data zero1 --expert 8 --pipeline 4 --global-batch 128
--model mixtral-8x7b --gpu h200 --gpus 64 --framework megatron-core --data zero1 --expert 8 --tensor 2 --global-batch 64
--model qwen3-30b-a3b --gpu h100 --gpus 32 --framework megatron-core --data zero1 --expert 8 --global-batch 64
--model deepseek-v3 --gpu h100 --gpus 256 --framework megatron-core --data zero1 --expert 32 --pipeline 8 --global-batch 256
--model llama3-8b --gpu h100 --gpus 32 --recipe fp8_current --framework megatron-core --data zero1 --local-batch 2
--model llama3-8b --gpu b200 --gpus 32 --recipe mxfp8 --framework megatron-core --data zero1 --local-batch 2
--model llama2-7b --gpu a100 --gpus 8 --lora-rank 16 --local-batch 4
--model llama2-7b --gpu a100 --gpus 64 --data zero2 --local-batch 2
--model llama2-7b --gpu h100 --gpus 64 --data ddp --local-batch 1
--model llama2-7b --gpu h100 --nodes 2 --local-batch 1 --recompute full
--model llama2-7b --gpu v100 --nodes 2 --local-batch 1
--model llama2-13b --gpu h200 --nodes 4 --context 4 --sequence 32k --local-batch 1
--model llama2-13b --gpu h200 --nodes 4 --sequence 8k --recompute selective --local-batch 1
--model bert-large --gpu v100 --gpus 16 --local-batch 8
--model dbrx --gpu h100 --gpus 128 --framework megatron-core --data zero1 --expert 8 --pipeline 4 --global-batch 128
--model llama3-8b --gpu h100 --gpus 64 --data zero3 --local-batch 1 --set plan.prefetch=2
--model llama3-8b --gpu h100 --gpus 64 --data zero3 --local-batch 1 --without interference
--model llama3-8b --gpu h100 --gpus 64 --data zero3 --local-batch 1 --set noise.kernel_sigma=0.02 --seed 7
--model llama3-8b --gpu h100 --gpus 64 --data zero3 --local-batch 1 --power-cap '500 W'
--model llama3-8b --gpu h100 --gpus 1024 --data zero3 --local-batch 1
--model llama3-8b --gpu h100 --gpus 64 --framework torchtitan --data zero3 --local-batch 1
--model llama3-8b --gpu h100 --gpus 64 --framework deepspeed --data zero3 --local-batch 1
--model llama3-8b --gpu h100 --gpus 4 --data zero3 --local-batch 1
--model llama3-70b --gpu h100 --gpus 8 --data zero3 --local-batch 4
--model llama3-8b --gpu h100 --gpus 64 --tensor 3 --data zero3 --local-batch 1
--model llama9-8b --gpu h100 --gpus 64
--model llama3-8b --gpu h100 --gpus 64 --modle x
--model llama3-8b --gpu h100 --gpus 64 --sequence 4q
--gpu h100 --gpus 64
--model llama3-8b --gpu h100 --gpus 64 --global-batch 65
--model llama3-8b --gpu h100 --gpus 64 --set plan.tensro=2
--model llama3-8b --gpu h100 --gpus 64 --framework megatron-core --data zero2 --local-batch 1
""".strip().splitlines()

# What a user of Axolotl has, with no word of the machine.
LAUNCH_FILE = """base_model: meta-llama/Llama-3.1-8B
adapter: lora
lora_r: 16
lora_alpha: 32
sequence_len: 4096
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 4
optimizer: adamw_torch
bf16: true
flash_attention: true
gradient_checkpointing: true
"""

# What each control is set to; nearly all give another step time.
SETTINGS = {"model": "llama2-13b", "sequence": "8192", "gpu": "h200", "node": "aws-p5", "gpus": "128",
            "fabric": "fat-tree", "framework": "torchtitan", "recipe": "fp8_current",
            "global-batch": "256", "local-batch": "4", "micro-batch": "1", "data": "zero2",
            "tensor": "2", "pipeline": "2", "virtual-stages": "2", "schedule": "gpipe",
            "context": "2", "expert": "2", "recompute": "full", "tokens": "1T",
            "price": "2 USD/h"}


def until(browser, expression, what, seconds=60):
    end = time.monotonic() + seconds
    while not browser.value(expression):
        if time.monotonic() > end:
            raise SystemExit(f"FAILED: {what}")
        time.sleep(0.02)


def told(browser, words):
    """The page's answer to the words, by way of its address."""
    drawn = browser.value("stepcast.drawn")
    browser.value(f"location.hash = {json.dumps('q=' + urllib.parse.quote(words))}")
    until(browser, f"stepcast.drawn > {drawn}", f"no answer to {words}")
    return browser.value("stepcast.told.text")


def check_time(found_ms, most_ms, crowd, what):
    """Judged on a calm machine alone."""
    if crowd < 1.25:
        check(found_ms < most_ms, f"{what} takes {found_ms:.0f} ms, at most {most_ms}")
    else:
        print(f"{what} is not judged: a loop takes {crowd:.1f} times what it takes alone")


def check_answers(browser, stepcast):
    same = 0
    for words in SCENARIOS:
        printed = subprocess.run([stepcast, "run", *shlex.split(words), "--json"],
                                 capture_output=True, text=True).stdout
        ours = told(browser, words)
        check(ours.strip() == printed.strip() and printed.strip(),
              f"{words}: the page says\n{ours[:300]}\nthe program\n{printed[:300]}")
        same += ours.strip() == printed.strip()
    print(f"{same} of {len(SCENARIOS)} answers are the program's")


def navigate(browser, url):
    browser.events.clear()
    browser.navigate("about:blank")
    browser.navigate(url)
    until(browser, "document.body?.dataset.ready == 'yes'", "the page does not get ready")
    return browser.value("stepcast.times.ready")


def check_controls(browser):
    """Every control, set by itself, changes the words and is answered."""
    for option, value in SETTINGS.items():
        told(browser, SCENARIOS[0].replace("--local-batch 1", "--local-batch 2"))
        drawn, before = browser.value("[stepcast.drawn, stepcast.told.text]")
        browser.value(f"""(() => {{ const e = document.getElementById('of-{option}');
            e.value = {json.dumps(value)}; e.dispatchEvent(new Event('change')); }})()""")
        until(browser, f"stepcast.drawn > {drawn}", f"{option} is not answered")
        words, after = browser.value("[stepcast.words.join(' '), stepcast.told.text]")
        check(f"--{option} {value}" in words, f"{option}: the words are {words}")
        check(before != after, f"{option} changes nothing")
    print(f"{len(SETTINGS)} controls change the answer")


def check_slider(browser, crowd):
    told(browser, SCENARIOS[0])
    times = []
    for turn in range(21):
        drawn = browser.value("stepcast.drawn")
        browser.value(f"""(() => {{ const e = document.getElementById('of-gpus-slider');
            e.value = {3 + turn % 7}; e.dispatchEvent(new Event('input')); }})()""")
        until(browser, f"stepcast.drawn > {drawn}", "the slider is not answered")
        times.append(browser.value("stepcast.times.answer"))
    median = statistics.median(times)
    print(f"slider: {median:.0f} ms in the median of {len(times)}, {max(times):.0f} ms at most")
    check_time(median, 60, crowd, "a slider's answer")


def check_forbidden(browser):
    """What the program refuses is greyed, with its own words."""
    told(browser, SCENARIOS[0])
    checked = browser.value("stepcast.checked")
    until(browser, f"stepcast.checked > {checked} || stepcast.checked > 0 && "
          "document.querySelector('#of-tensor option:disabled')", "choices are not checked")
    greyed = browser.value("[...document.querySelectorAll('#question option:disabled')]"
                           ".map(e => e.parentElement.id + ' ' + e.textContent)")
    check(any(text.startswith("of-schedule") or text.startswith("of-tensor") for text in greyed),
          f"nothing is greyed: {greyed}")
    print(f"{len(greyed)} choices are greyed, as '{greyed[0] if greyed else ''}'")


def check_actions(browser, stepcast):
    """Search, why, launch, report, a curve and a file of the user's."""
    words = "--model llama3-8b --gpu h100 --gpus 8 --global-batch 16 --framework megatron-core"
    told(browser, words)

    def after(action, seconds=240):
        drawn = browser.value("stepcast.drawn")
        browser.value(action)
        until(browser, f"stepcast.drawn > {drawn}", f"{action} does not end", seconds)
        return browser.value("document.getElementById('more').innerText")

    def click(selector):
        return after(f"document.querySelector({json.dumps(selector)}).click()")

    found = click("#best")
    check("optimal among" in found, f"the search says {found[:300]}")
    click("#more button")
    taken = browser.value("stepcast.told.answer.step_time_s")
    printed = json.loads(subprocess.run(
        [stepcast, "search", *words.split(), "--top", "1", "--json", "--quiet"],
        capture_output=True, text=True).stdout)
    check(taken == printed["plans"][0]["step_time_s"],
          f"the plan that was taken has {taken} s, the search's {printed['plans'][0]}")
    for selector, said in (("#why", "critical path"), ("#launch", "torchrun"),
                           ("#files", "scenario.toml"), ("#sweep button", "Step time over gpus")):
        text = click(selector)
        check(said in text, f"{selector}: {text[:300]}")
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 2048,
              "intermediate_size": 8192, "num_hidden_layers": 16, "num_attention_heads": 32,
              "num_key_value_heads": 8, "vocab_size": 128256, "hidden_act": "silu",
              "tie_word_embeddings": True, "max_position_embeddings": 8192}
    after(f"takeFiles([new File([{json.dumps(json.dumps(config))}], 'config.json')])")
    check(browser.value("stepcast.told.answer.step_time_s") != taken and
          "/config.json" in browser.value("stepcast.words"), "a config.json is not taken")
    after(f"takeFiles([new File([{json.dumps(LAUNCH_FILE)}], 'axolotl.yaml')])")
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "axolotl.yaml"), "w") as file:
            file.write(LAUNCH_FILE)
        printed = json.loads(subprocess.run(
            [stepcast, "run", "axolotl.yaml", "--gpu", "h100", "--gpus", "8", "--json", "--quiet"],
            capture_output=True, text=True, cwd=folder).stdout)
    check(browser.value("stepcast.told.answer.step_time_s") == printed["step_time_s"],
          f"a launch file: {browser.value('stepcast.told.text')[:300]}")
    print("search, why, launch files, scenario, curve, config.json and a launch file answer")


def check_pictures(browser):
    """A heat map, what changed from mine, and the report that follows the question."""
    draw_heat_map(browser)
    cells = browser.value("[...document.querySelectorAll('#more td')].map(e => e.className + ' ' + "
                          "e.textContent)")
    check(len(cells) == 6 and all(re.match(r"heat\d \d.* m?s$", cell) for cell in cells) and
          any(cell.startswith("heat0") for cell in cells), f"the heat map has {cells}")
    browser.value("""(() => { document.getElementById('axis').value = 'global-batch';
        document.getElementById('axis2').value = 'local-batch';
        document.querySelector('#sweep button').click();
        document.getElementById('axis2').value = ''; })()""")
    check("cannot be changed together" in
          browser.value("document.getElementById('more').innerText"), "two batches make a map")
    show_changes(browser)
    check("what_if.toml" in browser.value("document.getElementById('more').innerText") and
          browser.value("document.querySelector('#more img').naturalWidth") > 300,
          "what changed is not drawn")

    def report():
        return browser.value("document.getElementById('report-frame').srcdoc")

    open_report(browser)
    first, known = report(), browser.value("stepcast.reported")
    check("<h1" in first and "h200" in first, f"the report is {first[:300]}")
    told(browser, SCENARIOS[1].replace("--gpus 64", "--gpus 128"))
    until(browser, f"stepcast.reported > {known}", "the report does not follow")
    check(report() != first and "128" in report(), "the report is of an older question")
    check(browser.value("document.querySelector('#live a').download") == "report.html",
          "the report cannot be kept")
    browser.value("document.querySelector('#live button').click()")
    check(not browser.value("document.getElementById('report-frame')"), "the report does not close")
    print("heat map, what changed and a report that follows")


def check_live_report(browser, url):
    """What stepcast report --live writes opens with its report."""
    browser.navigate(url)
    until(browser, "window.stepcast?.reported > 0", "the live report does not open")
    check("llama2-7b on 64 x a100" in
          browser.value("document.getElementById('report-frame').srcdoc"), "it is another report")
    print("a live report opens with its report")


def draw_heat_map(browser):
    told(browser, SCENARIOS[1])
    drawn = browser.value("stepcast.drawn")
    browser.value("""(() => { const set = (id, value) => {
          const e = document.getElementById(id);
          e.value = value; e.dispatchEvent(new Event('change')); };
        set('axis', 'gpus'); set('values', '32 64 128'); set('axis2', 'local-batch');
        set('values2', '1 2'); document.querySelector('#sweep button').click();
        set('axis2', ''); })()""")
    until(browser, f"stepcast.drawn > {drawn}", "the heat map does not end")


def show_changes(browser):
    told(browser, SCENARIOS[1])
    browser.value("document.getElementById('keep').click()")
    told_mine = urllib.parse.urlencode({"q": SCENARIOS[1].replace("h100", "h200").replace(
        "--local-batch 1", "--local-batch 2"), "mine": SCENARIOS[1]})
    drawn = browser.value("stepcast.drawn")
    browser.value(f"location.hash = {json.dumps(told_mine)}")
    until(browser, f"stepcast.drawn > {drawn}", "no answer beside mine")
    drawn = browser.value("stepcast.drawn")
    browser.value("document.getElementById('changes').click()")
    until(browser, f"stepcast.drawn > {drawn}", "what changed is not said")
    until(browser, "document.querySelector('#more img')?.complete", "what changed is not drawn")


def open_report(browser):
    known = browser.value("stepcast.reported")
    browser.value("document.getElementById('report').click()")
    until(browser, f"stepcast.reported > {known}", "no report")


def check_look(browser):
    for width in (400, 1400):
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900,
                     deviceScaleFactor=1, mobile=False)
        over = browser.value(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth")
        check(over <= 0, f"{over} px wider than {width} px")
    contrast = check_contrast(browser, "stepcast.html")
    for node in browser.call("Accessibility.getFullAXTree")["nodes"]:
        if node.get("role", {}).get("value") in ("image", "button", "textbox", "combobox", "slider",
                                                 "checkbox", "listbox"):
            check(node.get("name", {}).get("value", "").strip(),
                  f"a {node['role']['value']} has no name: {node.get('properties')}")
    controls = browser.value(CONTROLS.replace("a[href],", "a[href],input,select,textarea,"))
    reached = reached_by_tab(browser, "stepcast.html", controls)
    enabled = browser.value("[...document.querySelectorAll('[data-control]')]"
                            ".filter(e => !e.disabled).length")
    check(len(reached) == enabled, f"Tab reaches {len(reached)} of {enabled} controls")
    print(f"{enabled} controls by Tab, contrast {contrast:.2f}")


def check_network(browser, url):
    for event in browser.events:
        method, what = event.get("method"), event.get("params", {})
        if method == "Network.requestWillBeSent":
            asked = what["request"]["url"]
            check(asked.split("#")[0] == url or asked.startswith(("blob:", "about:")),
                  f"asks for {asked[:100]}")
        if method == "Runtime.exceptionThrown":
            check(False, f"{what['exceptionDetails']}")
        if method in ("Runtime.consoleAPICalled", "Log.entryAdded"):
            entry = what.get("entry", what)
            check(entry.get("level", entry.get("type")) not in ("error", "warning"), f"{entry}")


def take_pictures(browser, url, folder):
    os.makedirs(folder, exist_ok=True)
    kept = urllib.parse.urlencode({"q": SCENARIOS[1].replace("h100", "h200"),
                                   "mine": SCENARIOS[1]})
    refused = urllib.parse.urlencode({"q": SCENARIOS[31]})
    for name, width, height, scheme, state in (
            ("answer", 1280, 900, "light", urllib.parse.urlencode({"q": SCENARIOS[3]})),
            ("beside_dark", 1280, 900, "dark", kept), ("refused", 1280, 900, "light", refused),
            ("phone", 400, 860, "light", urllib.parse.urlencode({"q": SCENARIOS[8]}))):
        browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                     deviceScaleFactor=1, mobile=False)
        browser.call("Emulation.setEmulatedMedia",
                     features=[{"name": "prefers-color-scheme", "value": scheme}])
        navigate(browser, f"{url}#{state}")
        until(browser, "stepcast.checked > 0", "choices are not checked")
        take_picture(browser, folder, name)
    browser.call("Emulation.setDeviceMetricsOverride", width=1280, height=900,
                 deviceScaleFactor=1, mobile=False)
    browser.call("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": "light"}])
    for name, show, place in (("heat_map", draw_heat_map, "more"),
                              ("changes", show_changes, "more"), ("report", open_report, "live")):
        show(browser)
        time.sleep(1)  # a frame is drawn after it has been filled
        browser.value(f"document.getElementById('{place}').scrollIntoView()")
        take_picture(browser, folder, name)


def take_picture(browser, folder, name):
    picture = browser.call("Page.captureScreenshot", format="png")["data"]
    with open(os.path.join(folder, name + ".png"), "wb") as file:
        file.write(base64.b64decode(picture))


def in_firefox(program, stepcast, url, live):
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Firefox(program, folder)
        browser.navigate(url)
        until(browser, "document.body?.dataset.ready == 'yes'", "the page does not get ready")
        print(f"ready after {browser.value('stepcast.times.ready'):.0f} ms")
        check_answers(browser, stepcast)
        check_actions(browser, stepcast)
        check_pictures(browser)
        check_live_report(browser, live)
        browser.close()


def in_chromium(program, stepcast, url, live, pictures):
    crowd = float(os.environ.get("CROWD", "100")) / 100  # how much slower a loop is now than alone
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(program, folder)
        for domain in ("Page", "Runtime", "Network", "Log", "Accessibility"):
            browser.call(domain + ".enable")
        browser.call("Network.emulateNetworkConditions", offline=True, latency=0,
                     downloadThroughput=-1, uploadThroughput=-1)
        ready = navigate(browser, url)
        times = browser.value("stepcast.times")
        print(f"ready after {ready:.0f} ms:",
              *(f"{what} {times[what]:.0f}" for what in ("unpacked", "compiled", "started")))
        check_time(ready, 1500, crowd, "getting ready")
        if pictures:
            take_pictures(browser, url, pictures)
        else:
            check_answers(browser, stepcast)
            check_controls(browser)
            check_forbidden(browser)
            check_slider(browser, crowd)
            check_actions(browser, stepcast)
            check_pictures(browser)
            told(browser, SCENARIOS[1])
            words = browser.value("stepcast.words.join(' ')")
            address = browser.value("location.href")
            navigate(browser, address)
            check(browser.value("stepcast.words.join(' ')") == words, "a reload forgets the words")
            check_look(browser)
        check_network(browser, url)
        if not pictures:
            check_live_report(browser, live)
        browser.close()


def main():
    program, stepcast, page = sys.argv[1:4]
    url = "file://" + os.path.abspath(page)
    live = os.path.join(os.path.dirname(url), "live.html")  # of report --live
    size = os.path.getsize(page)
    check(size < 5e6, f"the page has {size} bytes")
    print(f"{size / 1e6:.2f} MB")
    if "firefox" in os.path.basename(program):
        in_firefox(program, stepcast, url, live)
    else:
        in_chromium(program, stepcast, url, live, sys.argv[4] if len(sys.argv) > 4 else None)
    sys.exit(1 if problems else 0)


main()
