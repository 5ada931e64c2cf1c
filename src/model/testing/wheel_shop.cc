#include "model/testing/wheel_shop.h"

#include <cstdlib>
#include <filesystem>
#include <future>

#include "base/check.h"
#include "base/file.h"
#include "base/subprocess.h"

namespace cachalot::model {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMakeWheel = R"PYTHON(
import sys, zipfile
wheel, package, version, member, contents = sys.argv[1:]
info = '%s-%s.dist-info/' % (package.replace('-', '_'), version)
with zipfile.ZipFile(wheel, 'w') as z:
    z.write(contents, member)
    z.writestr(info + 'METADATA', 'Metadata-Version: 2.1\nName: %s\nVersion: %s\n' % (package, version))
    z.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    z.writestr(info + 'RECORD', '')
)PYTHON";

constexpr const char* kServe = R"PYTHON(
import hashlib, http.server, os, re, sys
folder, cut = sys.argv[1], int(sys.argv[2])
seen = set()

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *args):
        pass

    def do_GET(self):
        name = self.path.strip('/').split('/')[-1]
        if name == 'stop':
            self.answer(200, b'')
            os._exit(0)
        if self.path.startswith('/simple/'):
            links = ''
            for f in sorted(os.listdir(folder)):
                if f.endswith('.whl') and re.sub('[-_.]+', '-', f.split('-')[0]) == name:
                    with open(os.path.join(folder, f), 'rb') as wheel:
                        links += '<a href="/files/%s#sha256=%s">%s</a>' % (f, hashlib.sha256(wheel.read()).hexdigest(), f)
            self.answer(200 if links else 404, ('<!DOCTYPE html><html><body>%s</body></html>' % links).encode())
        else:
            self.send_file(name)

    def answer(self, status, body):
        self.send_response(status)
        self.send_header('Content-Type', 'text/html')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def send_file(self, name):
        with open(os.path.join(folder, name), 'rb') as f:
            data = f.read()
        asked = re.match(r'bytes=(\d+)-$', self.headers.get('Range', ''))
        start = int(asked.group(1)) if asked else 0
        with open(os.path.join(folder, 'requests'), 'a') as log:
            log.write('%s %d\n' % (name, start))
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header('Content-Range', 'bytes %d-%d/%d' % (start, len(data) - 1, len(data)))
        self.send_header('Content-Length', str(len(data) - start))
        self.end_headers()
        if cut and name not in seen:
            self.wfile.write(data[start:start + cut])
            self.close_connection = True
        else:
            self.wfile.write(data[start:])
        seen.add(name)

server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
)PYTHON";

}  // namespace

bool WheelShop::CanRun() {
  static const bool can_run = [] {
    const Result<SubprocessResult> run = RunSubprocess({.argv = {"python3", "-m", "pip", "--version"}});
    return run.ok() && run->ok();
  }();
  return can_run;
}

WheelShop::WheelShop() {
  std::string pattern = fs::temp_directory_path() / "cachalot_shop_XXXXXX";
  CACHALOT_CHECK(::mkdtemp(pattern.data()) != nullptr);
  folder_ = pattern;
  SetVariable("PIP_CONFIG_FILE", "/dev/null");
  SetPipSource(folder_, "");
}

WheelShop::~WheelShop() {
  if (server_.joinable()) {
    const std::string stop = "import sys, urllib.request; urllib.request.urlopen(sys.argv[1] + '/stop')";
    (void)RunSubprocess({.argv = {"python3", "-c", stop, GetEnv("PIP_INDEX_URL", "")}});
    server_.join();
  }
  for (const auto& [name, value] : earlier_) {
    if (value.empty()) {
      ::unsetenv(name.c_str());
    } else {
      ::setenv(name.c_str(), value.c_str(), 1);
    }
  }
  std::error_code ignored;
  fs::remove_all(folder_, ignored);
}

void WheelShop::SetVariable(const std::string& name, const std::string& value) {
  earlier_.emplace(name, GetEnv(name.c_str(), ""));
  ::setenv(name.c_str(), value.c_str(), 1);
}

void WheelShop::SetPipSource(const std::string& find_links, const std::string& index_url) {
  SetVariable("PIP_FIND_LINKS", find_links);
  SetVariable("PIP_INDEX_URL", index_url);
  SetVariable("PIP_EXTRA_INDEX_URL", "");
  SetVariable("PIP_NO_INDEX", index_url.empty() ? "1" : "0");
  SetVariable("PIP_RETRIES", "0");
  SetVariable("no_proxy", "127.0.0.1");
}

uint64_t WheelShop::Add(const std::string& package, const std::string& version, const std::string& member,
                        std::string_view contents) {
  std::string file = package;
  for (char& c : file) c = c == '-' ? '_' : c;
  const std::string wheel = folder_ + "/" + file + "-" + version + "-py3-none-any.whl";
  const std::string source = folder_ + "/contents";
  CACHALOT_CHECK(WriteFileAtomically(source, contents).ok());
  const Result<SubprocessResult> made =
      RunSubprocess({.argv = {"python3", "-c", kMakeWheel, wheel, package, version, member, source}});
  CACHALOT_CHECK(made.ok() && made->ok());
  return fs::file_size(wheel);
}

void WheelShop::Serve(uint64_t cut_after_bytes) {
  std::promise<std::string> port;
  std::future<std::string> started = port.get_future();
  server_ = std::thread([this, cut_after_bytes, port = std::move(port)]() mutable {
    SubprocessOptions run;
    run.argv = {"python3", "-c", kServe, folder_, std::to_string(cut_after_bytes)};
    run.on_line = [&](std::string_view line) { port.set_value(std::string(line)); };
    (void)RunSubprocess(run);
  });
  SetPipSource("", "http://127.0.0.1:" + started.get() + "/simple");
}

std::string WheelShop::Requests() const {
  const Result<std::string> requests = ReadFile(folder_ + "/requests", 1 << 20);
  return requests.ok() ? *requests : "";
}

}  // namespace cachalot::model
