#include "base/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace cachalot {
namespace {

constexpr size_t kMaxLineBytes = 64 << 10;

std::string ErrnoText(int error) { return std::generic_category().message(error); }

struct Pipe {
  int read = -1;
  int write = -1;

  Pipe() = default;
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    CloseRead();
    CloseWrite();
  }
  bool Open() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    read = ends[0];
    write = ends[1];
    return true;
  }
  void CloseRead() {
    if (read >= 0) ::close(std::exchange(read, -1));
  }
  void CloseWrite() {
    if (write >= 0) ::close(std::exchange(write, -1));
  }
};

// Cuts a stream of bytes into lines. A line longer than kMaxLineBytes arrives in pieces.
class LineSplitter {
 public:
  explicit LineSplitter(const std::function<void(std::string_view)>& on_line) : on_line_(on_line) {}

  void Add(std::string_view bytes) {
    pending_ += bytes;
    size_t start = 0;
    for (size_t end; (end = pending_.find('\n', start)) != std::string::npos; start = end + 1) {
      on_line_(std::string_view(pending_).substr(start, end - start));
    }
    pending_.erase(0, start);
    if (pending_.size() >= kMaxLineBytes) Finish();
  }
  void Finish() {
    if (!pending_.empty()) on_line_(pending_);
    pending_.clear();
  }

 private:
  const std::function<void(std::string_view)>& on_line_;
  std::string pending_;
};

// Everything below runs in the child, between fork and exec: system calls only.
[[noreturn]] void ExecChild(char* const* argv, int out, int err, int report, pid_t parent) {
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(127);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  // Away from 0, 1 and 2, where our own pipes may stand if those were closed.
  out = ::fcntl(out, F_DUPFD_CLOEXEC, 3);
  if (err >= 0) err = ::fcntl(err, F_DUPFD_CLOEXEC, 3);
  report = ::fcntl(report, F_DUPFD_CLOEXEC, 3);
  const int empty = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const bool redirected = empty >= 0 && ::dup2(empty, STDIN_FILENO) >= 0 && ::dup2(out, STDOUT_FILENO) >= 0 &&
                          (err < 0 || ::dup2(err, STDERR_FILENO) >= 0);
  if (redirected) ::execvp(argv[0], argv);
  const int error = errno;
  [[maybe_unused]] const ssize_t ignored = ::write(report, &error, sizeof(error));
  ::_exit(127);
}

// Reads both streams until the program closes them.
void ReadStreams(const SubprocessOptions& options, int out_fd, int err_fd, SubprocessResult* result) {
  LineSplitter lines(options.on_line);
  std::array<char, 16 << 10> buffer;
  pollfd fds[] = {{out_fd, POLLIN, 0}, {err_fd, POLLIN, 0}};
  while (fds[0].fd >= 0 || fds[1].fd >= 0) {
    if (::poll(fds, 2, -1) < 0) continue;  // EINTR
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd < 0 || fds[i].revents == 0) continue;
      const ssize_t n = ::read(fds[i].fd, buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) {
        fds[i].fd = -1;
        continue;
      }
      const std::string_view bytes(buffer.data(), static_cast<size_t>(n));
      if (i == 1) {
        result->err += bytes;
        if (result->err.size() > options.capture_bytes)
          result->err.erase(0, result->err.size() - options.capture_bytes);
      } else if (options.on_line) {
        lines.Add(bytes);
      } else if (result->out.size() < options.capture_bytes) {
        result->out += bytes.substr(0, options.capture_bytes - result->out.size());
      }
    }
  }
  lines.Finish();
}

void WaitFor(pid_t child, SubprocessResult* result) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return;  // ECHILD: the process ignores SIGCHLD, its status is lost
  }
  if (WIFEXITED(status)) result->exit_status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result->signal = WTERMSIG(status);
}

}  // namespace

Result<SubprocessResult> RunSubprocess(const SubprocessOptions& options) {
  CACHALOT_CHECK(!options.argv.empty());
  std::vector<char*> argv;
  for (const std::string& argument : options.argv) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const std::string& program = options.argv[0];
  Pipe out, err, report;
  if (!out.Open() || !report.Open() || (!options.inherit_error && !err.Open())) {
    return Unavailable(fmt::format("cannot run {}: no pipe: {}", program, ErrnoText(errno)));
  }
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return Unavailable(fmt::format("cannot run {}: {}", program, ErrnoText(errno)));
  if (child == 0) ExecChild(argv.data(), out.write, err.write, report.write, parent);
  out.CloseWrite();
  err.CloseWrite();
  report.CloseWrite();

  SubprocessResult result;
  int exec_error = 0;
  ssize_t n = 0;
  while ((n = ::read(report.read, &exec_error, sizeof(exec_error))) < 0 && errno == EINTR) {
  }
  if (n != sizeof(exec_error)) ReadStreams(options, out.read, err.read, &result);
  WaitFor(child, &result);
  if (n == sizeof(exec_error)) return Unavailable(fmt::format("cannot run {}: {}", program, ErrnoText(exec_error)));
  return result;
}

}  // namespace cachalot
