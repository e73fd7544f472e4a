"""Command lines for everyday programs: whether each only reads, or has to be asked about."""

from __future__ import annotations

_READ = r"""
find . -name '*.py' -exec grep -l x {} + ;; find src -type f -exec wc -l {} \; ;; find . -exec echo {} {} \; ;;
pkg-config --libs --cflags glib-2.0 'gtk+-3.0 >= 3.2' ;; pkgconf --exists x ;; pkg-config --list-all ;;
keytool -list -v -keystore a.jks ;; keytool -printcert -file a.crt ;; pipdeptree -r -p x ;; coverage -h ;;
rsync -anv a/ b ;; rsync --dry-run -r --exclude x a b ;; csvsql -i sqlite a.csv ;; csvsql --tables x a.csv ;;
black -q -l 99 -c 'x = 1' ;; black --version ;; less +25 a.txt ;; [[ -f a ]] ;; [[ a == b* ]] ;;
find a b -exec head -3 {} \; -exec ls -l {} + ;; exit ;; exit 0 ;;
csvcut -n a.csv ;; csvcut -c 1,2 a.csv ;; csvgrep -c 1 -r '^I' a.csv ;; csvgrep -c x -f list a.csv ;;
csvstat a.csv ;; csvstat --mean -c x a.csv ;; csvsort -c 1 -r a.csv ;;
csvjoin -c id a.csv b.csv ;; csvstack a.csv b.csv ;;
csvformat -D '|' a.csv ;; csvjson -i 4 -k x a.csv ;; in2csv a.xlsx ;; in2csv -s schema.csv a.txt ;; brctl show ;;
brew list ;;
brew list --versions node ;; openssl x509 -in a.crt -noout -subject ;; black --version ;;

cat a.txt ;; cat -n a b - ;; cat -- -x ;; cat *.txt ;; tac -rb a ;; nl -ba a ;; nl -s '. ' -w1 ;;
rev a b ;; head -5 a ;; head -n -3 a b ;; head -c 10k *.txt ;; tail -n +2 a ;; tail -20 a ;; tail -c5 a ;;
cut -d: -f1 /etc/passwd ;; cut -c-3 --complement a ;; paste -sd, - ;; paste -d '\n' a b ;; join -11 -21 -o1.1,2.3 a b ;;
join -t , a b ;; comm -12 a b ;; comm --output-delimiter=x a b ;; sort -k2,2n -t: -ru a ;; sort -nrk 2,2 ;;
sort --parallel=4 a b ;; sort -c a ;; uniq -c ;; uniq -f1 -w 10 a ;; uniq --group=both a ;; tr -d '\n' ;; tr a-z A-Z ;;
tr -sc a '\n' ;; wc -l *.py ;; wc --files0-from=list ;; wc -cmw a ;; expand -t 4 a ;; expand -4 a ;;
unexpand -a -t 2 a ;; fold -80 ;; fold -sw 70 a ;; fmt -w 60 a ;; fmt -72 a ;; pr -2 -t -s, a ;; pr -m -w 80 a b ;;
column -t -s , a ;; column -t -o ' | ' a ;; colrm 3 5 ;; col -bx ;; col -l 5 ;; look -f pre a ;; shuf -n 3 a ;;
shuf -i 1-9 ;; shuf -e a b ;; seq 5 -1 1 ;; seq -s, -w 1 10 ;; seq -5 5 ;; numfmt --from auto 1.5Ki ;;
numfmt --to=iec 1000 ;; tsort a ;; ptx -w 60 a ;; ptx -f a ;; od -A n -t x1 a ;; od -cvAnone -w1 ;; od -xc a ;;
xxd -l 16 a ;; xxd -p ;; xxd -r -p a ;; xxd -c8 -g 1 a ;; xxd -cols 8 a ;; hexdump -C -n 32 a ;;
hexdump -e '1/1 "%x"' a ;; hd a ;; base64 -d a ;; base64 -w0 a ;; base64 -D -i a ;; base32 -d a ;; basenc --base16 a ;;
iconv -f latin1 -t utf-8 a ;; iconv -t ASCII//TRANSLIT a ;; iconv -l ;; less -N a ;; less -x4 a ;; more a ;;
more -n 5 a ;; bat -n a ;; bat --style=plain -r 1:5 a ;; batcat a ;; diff -u a b ;; diff -U0 a b ;; diff -rq a b ;;
diff -y --suppress-common-lines a b ;; diff a b -u ;; head a -n 5 ;; base64 a -d ;;
grep foo a -A 3 ;; sort a -k 2 -t , ;; colordiff -u a b ;; sdiff -s a b ;; diff3 -m a b c ;; cmp -s a b ;;
cmp -n 10 a b ;; cmp a b 1 2 ;; echo -n hello -o x ;; echo *.txt ;; printf '%s\n' -v a ;; printf x ;;
csvlook -d ';' a.csv ;; man ls ;; man -k copy ;; man 3 printf ;; apropos copy ;; whatis ls ;; grep -rn foo src ;;
grep -A3 -B 2 -i foo *.txt ;; grep -e a -e b f ;; grep -5 foo f ;; grep --include='*.py' -r x . ;;
grep -v '^#' /etc/hosts ;; egrep 'a|b' f ;; fgrep -x a f ;; rgrep -n foo src ;; zgrep -i foo a.gz ;;
zgrep -e a -e b c.gz ;; zegrep 'a|b' a.gz ;; zfgrep a a.gz ;; xzgrep -c foo a.xz ;; xzegrep foo a.xz ;;
xzfgrep foo a.xz ;; bzgrep -i foo a.bz2 ;; bzgrep -A 3 foo a.bz2 ;; bzegrep foo a.bz2 ;; bzfgrep foo a.bz2 ;;
rg -n foo src ;; rg --files -g '*.py' ;; rg -uu -. foo ;; rg -tpy -e a -e b src ;; rg -A2 --no-heading x a ;;
ag -i foo src ;; ag -g '\.py$' ;; ag -C 3 foo ;; ack -i foo src ;; ack -l foo ;; awk '{print $1}' a ;;
awk -F: '$3 > 5 {print $1}' /etc/passwd ;; awk -v x=1 '{print x}' a x=2 b ;; awk -F, -v OFS=: '{print $1,$2}' a ;;
gawk '{print NF}' a ;; mawk '{print NR}' a ;; nawk '{print}' a ;; sed -n '1,5p' a ;; sed -e 's/a/b/' -e '3d' a b ;;
sed -E 's/(a)/\1/g' ;; sed '$d' a ;; jq . a.json ;; jq -r '.a[] | .b' a.json ;; jq -n '1+1' ;; jq --indent 2 -S . a ;;
gojq .a a.json ;; yq . a.yml ;; yq -r '.[0]' a.yml ;; xmllint --noout a.xml ;; xmllint --xpath '//a' a.xml ;; ls -la ;;
ls --color=auto -R src ;; ls *.txt ;; ls -lhtr --time-style=+%s ;; dir -l ;; vdir ;; stat -c '%a %n' a ;;
stat -f '%z' a ;; file -bi a ;; file -z a.gz ;; find . -name '*.py' -type f ;; fd -e py foo src ;;
fd -H -t f ;; fd --changed-within 2d x ;; fdfind x ;; locate -i x ;; plocate -c x ;; mlocate x ;; du -sh * ;;
du -h --max-depth=1 . ;; du -ah -t 1G . ;; df -h ;; df -x tmpfs . ;; df --output=source,avail ;; tree -L 2 ;;
tree -afi ;; tree -I 'node_modules|dist' ;; tree -P '*.txt' --prune ;; realpath -e a ;; realpath --relative-to=a b ;;
readlink -f a ;; readlink -ev a ;; basename -s .c a.c ;; basename a b ;; dirname a b ;; pwd -P ;; cd src && ls ;;
cd - ;; pathchk -p a ;; which -a python ;; whereis -b ls ;; whereis -b -B /usr/bin -f gcc ;; type -p ls ;;
command -v git ;; command -V ls ;; lsattr -d a ;; getfacl -p a ;; namei -l a ;; findmnt -o TARGET,SOURCE ;;
findmnt -T a ;; lsblk -f ;; lsblk -o NAME,SIZE ;; mountpoint -q a ;; test -f a ;; test a = b -o 1 -lt 2 ;; [ -d a ] ;;
[ a != b ] ;; true ;; true a || ls ;; false || ls ;; : a ;; expr 1 + 2 ;; expr match abc a ;; factor 12 ;; sleep 0.5s ;;
sleep 1 ;; dircolors -p ;; tty ;; id -un ;; id root ;; groups a b ;; whoami ;; logname ;; who -b ;; who am i ;; w -h ;;
users ;; last -5 ;; last -n 5 root ;; lastb -n 3 ;; lastlog -u root ;; hostname -f ;; hostname ;; uname -a ;;
uname -srv ;; arch ;; nproc --all ;; nproc --ignore 2 ;; date +%F ;; date -d @0 -u ;; date -ud@0 ;;
date --rfc-3339=seconds ;; date -Iseconds ;; date -r a ;; cal 9 2009 ;; cal -3 ;; ncal -h ;; uptime -p ;; free -h ;;
vmstat 1 2 ;; iostat -x 1 2 ;; mpstat -P ALL 1 1 ;; lscpu -e=CPU ;; lscpu -C ;; lsmem -a ;; lspci -nn -k ;; lsusb -t ;;
lsmod ;; lsns -t net ;; lslocks -n ;; lsof -i :80 ;; lsof -nP -iTCP -sTCP:LISTEN ;; lsof +D src ;; lsof -p 1 -u root ;;
pgrep -fl x ;; pgrep -u root -x sshd ;; pidof -s bash ;; pstree -p 1 ;; ps aux ;; ps -ef ;;
ps -eo pid,etime,cmd --sort -rss ;; ps k size ;; ps -o ppid= -p 1 ;; ps -u postgres ;; ps axo pid,comm ;; locale -a ;;
getconf -a ;; getconf PAGE_SIZE ;; getent passwd root ;; getent group ;; dmesg -T ;; dmesg -l err ;;
journalctl -u ssh -n 50 --no-pager ;; journalctl -b -p err ;; nm -C a.o ;; nm -u a.o ;; objdump -d -M intel a.o ;;
objdump -h a.o ;; readelf -h a ;; readelf --headers a ;; size -x a.o ;; strings -n 8 a ;; strings -t x a ;;
addr2line -e a.out 0x1 ;; c++filt _Z1fv ;; tar tf a.tar ;; tar -tvzf a.tgz ;; tar -t -f a.tar src ;; tar tfv a.tar ;;
tar --list --file=a.tar ;; gtar tf a.tar ;; bsdtar tf a.tar ;; unzip -l a.zip ;; unzip -p a.zip b ;; unzip -Z1 a.zip ;;
unzip -tq a.zip ;; zipinfo -1 a.zip ;; zipinfo a.zip ;; gzip -dc a.gz ;; gzip -l a.gz ;; gzip -t a.gz ;;
cat a | gzip -9 | wc -c ;; gunzip -c a.gz ;; zcat a.gz ;; zcat *.gz ;; gzcat a.gz ;; bzip2 -dc a.bz2 ;;
bunzip2 -c a.bz2 ;; bzcat a.bz2 ;; xz -dc a.xz ;; unxz -c a.xz ;; lzma -dc a.lzma ;; unlzma -c a.lzma ;; xzcat a.xz ;;
lzcat a.lzma ;; zstd -dc a.zst ;; zstd -dc -T0 a.zst ;; unzstd -c a.zst ;; zstdcat a.zst ;; lz4 -dc a.lz4 ;;
unlz4 -c a.lz4 ;; lz4cat a.lz4 ;; 7z l a.7z ;; 7z l -slt a.7z ;; 7za l a.7z ;; 7zr l a.7z ;; 7zz l a.7z ;;
unrar l a.rar ;; unrar lb a.rar ;; unrar vt a.rar ;; ar t a.a ;; ar tv a.a ;; dpkg -l ;;
dpkg -L bash ;; dpkg -S /bin/ls ;; dpkg --compare-versions 1 lt 2 ;; dpkg --print-architecture ;;
dpkg-query -W -f '${Package}\n' bash ;; dpkg-deb -c a.deb ;; rpm -qa ;; rpm -qi bash ;; rpm -q --qf '%{NAME}' bash ;;
apt-cache policy bash ;; apt-cache search -n x ;; apt list --installed ;; apt show bash ;; md5sum a b ;;
md5sum -c a.md5 ;; md5sum *.java ;; sha1sum a ;; sha224sum a ;; sha256sum -c --quiet a ;; sha384sum a ;; sha512sum a ;;
sha3sum a ;; b2sum -l 128 a ;; b3sum a ;; shasum -a 256 a ;; cksum -a sha256 a ;; sum -s a ;; md5 -q a ;; crc32 a ;;
openssl version -a ;; openssl dgst -sha256 a ;; ulimit -a ;; ulimit -n ;; umask ;; umask -S ;; jobs -l ;; kill -l ;;
kill -l 9 ;; python --version ;; python -V ;; python2 --version ;; python3 -VV ;; python3 --version ;; python3.9 -V ;;
python3.10 -V ;; python3.11 -V ;; python3.12 -V ;; python3.13 -V ;; python3.14 -V ;; node -v ;; node --version ;;
ruby --version ;; perl -v ;; php -v ;; lua -v ;; luajit -v ;; Rscript --version ;; java -version ;; javac -version ;;
go version ;; rustc --version ;; rustc -vV ;; gcc --version ;; gcc -dumpmachine ;; g++ --version ;; cc --version ;;
c++ --version ;; make --version ;; make -v ;; gmake --version ;;
cmake --version ;; ninja --version ;; mount ;; mount -l ;; sysctl -a ;; sysctl -n kernel.ostype ;;
systemctl status ssh --no-pager ;; systemctl is-active ssh ;; systemctl list-units --type=service ;; ip a ;;
ip addr show dev eth0 ;; ip -br link ;; ip route get 1.1.1.1 ;; ip -4 -j addr ;; ip neigh show ;; ip rule list ;;
ip netns list ;; ifconfig ;; ifconfig eth0 ;; ifconfig -a ;; ss -tlnp ;; ss -t state established ;; netstat -tlnp ;;
netstat -rn ;; docker ps -a ;; docker images ;; docker version ;; docker logs --tail 5 x ;; docker container ls ;;
docker --version ;; kubectl config current-context ;;
aws --version ;; uv --version ;; cargo --version ;; cargo -V ;; npm -v ;; pip list ;;
pip show -f x ;; pip --version ;; pip3 list
"""
"""Lines that only read, with ` ;; ` between them."""

_ASKS = r"""
pkg-config --log-file x a ;; pkg-config ./x ;; pkg-config --with-path=. x ;; keytool -genkeypair ;;
keytool -list -J-Dx ;; keytool -list -providerclass x -providerpath . ;; keytool -printcert -sslserver x ;;
keytool -printcert -file .env ;; keytool ;;
pipdeptree --python ./x ;; pipdeptree --graph-output png ;; rsync -a a b ;; rsync a b -n ;; rsync --exclude -n a b ;;
rsync -ne ./x a b ;; rsync -n --rsh=x a b ;; rsync -n a host:b ;; rsync -n --log-file=x a b ;; rsync -n --no-n a b ;;
rsync -n --exclude-from=.env a b ;; csvsql --db sqlite:///x --insert a.csv ;; csvsql .env ;;
black a.py ;; black --check . ;; black -c x a.py ;; black -c x --config a ;;
less '+2!id' a ;; less +2G a ;; less '+/x' a ;;
[[ -v x ]] ;; [[ x -eq 1 ]] ;; [[ a ;;
virtualenv -h x ;; virtualenv x ;;
cat --unknown a ;; cat .env ;; cat ~/.ssh/id_rsa ;; tac --sep=x a ;; nl --bo a a ;; rev .netrc ;; head --lin=3 a ;;
head .env ;; tail -f a ;; tail -F a ;; tail --follow=name a ;; tail --pid=1 a ;; tail -nf 3 --retry a ;;
cut --out=x a ;; cut -f1 .env ;; paste --d=x a ;; join a b c ;; comm a b c ;; sort -o b a ;; sort -uob a ;;
sort --output=b a ;; sort --outp=b a ;; sort -T /x a ;; sort --compress-program=./x a ;; sort --files0-from=a ;;
sort *.txt ;; uniq a b ;; uniq - b ;; uniq a -- -c ;; tr a b c ;; tr -x a ;; wc --files0-from=.env ;; wc -z a ;;
expand -x a ;; unexpand --x a ;; fold --wi=3 a ;; fmt --x a ;; pr --x a ;; column --tab a ;; colrm 1 2 3 ;; col a ;;
look a b c ;; shuf -o b a ;; shuf --output=b a ;; shuf *.txt ;; seq 1 2 3 4 ;; numfmt --fr=si 1K ;; tsort a b ;;
ptx -G a b ;; ptx --traditional a b ;; od --x a ;; od -c .env ;; xxd a b ;; xxd -r a b ;; xxd -group a b ;; xxd -zz a ;;
xxd a -p ;; uniq a -c ;;
hexdump --x a ;; hd .env ;; base64 -i a -o b ;; base64 a b ;; base32 --output=b a ;; basenc --x a ;;
iconv -t utf-8 -o b a ;; iconv -f ./map a ;; less '+!touch b' a ;; less +G a ;; less -o b a ;; less -k keys a ;;
less -P '$x' a ;; more +/x a ;; more -o b a ;; bat --pager=./x a ;; bat cache --build ;; bat --diagnostic ;;
bat --lessopen a ;; batcat --pager ./x a ;; diff --to-file=x a ;; diff --from-file x a ;; diff -l a b ;; diff a b c ;;
diff a .env ;; colordiff -l a b ;; sdiff -o c a b ;; sdiff --diff-program=./x a b ;; diff3 --diff-program=./x a b c ;;
cmp --x a b ;; echo hello > a ;; printf -v x y ;; printf -vPATH x ;; csvlook --del x a.csv ;; man -P ./x ls ;;
man -H./x ls ;; man ./page ;; man -l page ;; man --pager=./x ls ;; apropos -C x copy ;; whatis -M x ls ;;
grep -f .env a ;; grep --fil=x a ;; grep foo .env ;; grep -d recurse x . ;; grep x ~/.ssh/id_rsa ;; grep -r x ~ ;;
egrep x .env ;; fgrep -f .env f ;; rgrep --x foo ;; rgrep foo ~ ;; zgrep "-ea'" "-e;id;'" a ;; zegrep -r x . ;;
zfgrep -r x . ;; xzgrep --x foo a.xz ;; xzegrep -r x . ;; xzfgrep -r x . ;; bzgrep -m '1 -f .env' x a.bz2 ;;
bzgrep '-ex -r' a.bz2 ;; bzgrep x .env ;; bzegrep -e x a.bz2 ;; bzfgrep -f x a.bz2 ;; rg --pre ./x foo ;;
rg --pre=./x foo ;; rg --hostname-bin ./x foo ;; rg -z foo ;; rg --search-zip foo ;; rg -f .env a ;; rg foo *.py ;;
rg foo ~ ;; ag --pager ./x foo ;; ag foo ~ ;; ack --pager=./x foo ;; ack --output='$1' foo ;; ack --ackrc=x foo ;;
ack -x foo ;; ack foo ~ ;; awk -f p.awk a ;; awk '{print > "b"}' a ;; awk 'BEGIN{system("x")}' ;; awk -v x a ;;
awk -i inplace '{print}' a ;; awk '{print}' .env ;; awk -e '{print}' a ;; gawk -l x '{print}' a ;;
gawk -d '{print}' a ;; gawk -ox '{print}' a ;; mawk -W exec x ;; nawk -f x a ;; sed -i 's/a/b/' a ;;
sed -i.bak 's/a/b/' a ;; sed --in-place=x p a ;; sed -ni p a ;; sed -f x a ;; sed 'w b' a ;; sed 's/a/b/e' a ;;
sed -n p .env ;; sed -l 'w b' a ;; sed -I '' p a ;; jq -f x a ;; jq -L m . a ;; jq --slurpfile x .env . a ;;
jq . .env ;; jq -rf x a ;; jq env ;; gojq --from-file x a ;; yq -i .a=1 a.yml ;; yq 'load("x")' a ;; yq .env ;;
yq eval .a a.yml ;; yq -s .a a.yml ;; xmllint http://x/a.xml ;; xmllint file:///x/a.xml ;; xmllint -o b a.xml ;;
xmllint --valid a.xml ;; xmllint --shell a.xml ;; xmllint .m2/settings.xml ;; xmllint --noout .env ;; ls --col x ;;
ls > a ;; dir --x ;; vdir --x ;; stat --fo=x a ;; file -C -m a ;; file -p a ;; file -f .env ;; find . -delete ;;
find . -exec rm {} + ;; find . -fprint a ;; fd -x rm ;; fd -Hx rm ;; fd x --exec-batch rm ;; fd -l x ;; fd -X rm ;;
fdfind -x rm ;; locate --x y ;; plocate --x y ;; mlocate --x y ;; du --max=1 . ;; du -X .env . ;; df --x ;; tree -o b ;;
tree -fo b . ;; tree -Po a b ;; tree -L2o b ;; tree -Io x b ;; tree -R ;; tree --fromfile a ;; tree -H x ;;
realpath --x a ;; readlink --x a ;; basename --x a ;; dirname --x a ;; pwd -x ;; cd src && rm a ;; pathchk --x a ;;
which --x a ;; whereis --x ls ;; type -x ls ;; command git reset ;; command -p ls ;; command -pv ls ;; command -- ls ;;
lsattr --x a ;; getfacl --x a ;; namei --x a ;; findmnt --poll ;; findmnt -p ;; findmnt -F .env ;; lsblk --x ;;
mountpoint a b ;; test -v 'a[$(x)]' ;; test -v x ;; test -R x ;; [ -v x ] ;; true > a ;; false > a ;; : > a ;;
expr 1 > a ;; factor --x ;; sleep infinity ;; dircolors .env ;; tty a ;; id --x ;; groups --x ;; whoami a ;;
logname a ;; who --lookup ;; who a b c ;; w --x ;; users a b ;; last -d ;; last -f .env ;; lastb --dns ;;
lastlog -C -u root ;; hostname other ;; hostname -F a ;; hostname -b x ;; uname a ;; arch a ;; nproc a ;; date -s now ;;
date --set=now ;; date 01010101 ;; date -f .env ;; date +%F x ;; cal --x ;; ncal --x ;; uptime a ;; free -s 1 ;;
free a ;; vmstat x ;; iostat --x ;; mpstat x ;; lscpu a ;; lsmem a ;; lspci -q ;; lspci -Q ;; lspci -H1 ;; lsusb --x ;;
lsmod a ;; lsns --x ;; lslocks a ;; lsof -r 1 ;; lsof +r ;; lsof -D b ;; lsof +m x ;; pgrep --signal 9 x ;;
pgrep -F .env ;; pgrep --env A=b x ;; pidof --x bash ;; pstree --x ;; ps auxe ;; ps e ;; ps -auxe ;; ps aux e ;;
ps -E ;; ps -o pid,environ ;; ps o pid,environ ;; ps axeww ;; ps --format environ ;; locale --x ;; getconf -v x y ;;
getent hosts x ;; getent shadow ;; getent ahosts x ;; getent -s files passwd ;; getent networks ;; dmesg -c ;;
dmesg --clear ;; dmesg -w ;; dmesg -n 1 ;; dmesg -H ;; journalctl -f ;; journalctl --vacuum-size=1M ;;
journalctl --rotate ;; journalctl --cursor-file=b ;; journalctl --file=b ;; nm @a ;; nm --plugin x.so a.o ;;
nm --plugin=x.so a.o ;; objdump -s -b binary .env ;; objdump @a ;; objdump -S a.o ;; readelf @a ;; readelf -P a ;;
size @a ;; size --target=binary a ;; strings --plugin x a ;; strings .env ;; strings @list ;; addr2line @a ;;
addr2line -b x 1 ;; c++filt @a ;; tar xf a.tar ;; tar -xf a.tar ;; tar cf b a ;; tar tf host:a ;; tar tfv host:a ;;
tar tf a -I ./x ;; tar tf a --use-compress-program=./x ;; tar tf a --checkpoint=1 --checkpoint-action=exec=x ;;
tar tf a --to-command=x ;; tar tf a -T b ;; tar tf a --index-file=b ;; tar f a ;; tar tFf x a ;; gtar xf a.tar ;;
bsdtar xf a.tar ;; unzip a.zip ;; unzip -o a.zip ;; unzip -l --l a.zip ;; unzip -l- a.zip ;; unzip -p a.zip -d b ;;
unzip a.zip b -l ;; unzip a.zip b -Z ;; unzip a.zip -p b ;; gzip a -c ;; xz a -dc ;; zstd a -c ;; bzip2 a -dc ;;
unzip -lT a.zip ;; zipinfo -M a.zip ;; gzip a ;; gzip -k a ;; gzip -d a.gz ;; gzip -r a ;; gzip -c .env ;;
gunzip a.gz ;; gunzip -k a.gz ;; zcat --x a.gz ;; zcat .env ;; gzcat --x a.gz ;; bzip2 a ;; bzip2 -t -d a.bz2 ;;
bzip2 -dk a.bz2 ;; bunzip2 a.bz2 ;; bzcat --x a.bz2 ;; xz a ;; xz -l -d a.xz ;; xz -dk a.xz ;; xz -c --files=a ;;
unxz a.xz ;; lzma a ;; unlzma a.lzma ;; xzcat --files=a ;; lzcat --files=a ;; zstd a ;; zstd -dco b a ;;
zstd -l -d a.zst ;; zstd -c --rm a ;; zstd -cDo x b a ;; zstd -c -T4o b a ;; unzstd a.zst ;; zstdcat -o b a.zst ;;
lz4 a b ;; lz4 -c a b ;; unlz4 a.lz4 ;; lz4cat a.lz4 b ;; 7z x a.7z ;; 7z a b a ;; 7z l a.7z @list ;; 7za x a.7z ;;
7zr x a.7z ;; 7zz x a.7z ;; unrar x a.rar ;; unrar e a.rar ;; ar x a.a ;; ar r a.a b.o ;; ar t @a ;;
ar t --plugin x a.a ;; ar -p a.a b.o ;; dpkg -i a.deb ;; dpkg -r a ;; dpkg -l --pre-invoke=x ;; dpkg -x a.deb b ;;
dpkg-query --root=x -l ;; dpkg-deb -x a.deb b ;; dpkg-deb a.deb ;; rpm -i a.rpm ;; rpm -e a ;; rpm --eval '%(x)' ;;
keytool -printcrl -file http://a/x ;; jq . s3://a/x ;;
rpm -qf '%(id)x' ;; rpm -qf '%{lua:x}' ;; rpm -q --qf '%(id)' bash ;; rpm -q %x ;;
rpm -qp http://x/a.rpm ;; rpm -q --pipe x bash ;; apt-cache gencaches ;; apt-cache -o x=y show bash ;; apt install x ;;
apt update ;; apt list -o x=y ;; apt changelog x ;; md5sum --x a ;; md5sum .env ;; sha1sum --x a ;; sha224sum --x a ;;
sha256sum --x a ;; sha384sum --x a ;; sha512sum --x a ;; sha3sum --x a ;; b2sum --x a ;; b3sum --keyed a ;;
shasum --x a ;; cksum --x a ;; sum --x a ;; md5 --x a ;; crc32 -x a ;; openssl dgst -sha256 -out b a ;;
openssl s_client -connect a:1 ;; openssl genrsa ;; openssl dgst -sign k a ;; openssl dgst -engine x a ;; ulimit -c 0 ;;
ulimit -n5 ;; umask 000 ;; jobs -x ls ;; kill 1 ;; kill -9 1 ;; kill -s TERM 1 ;; python a.py ;; python -c x ;;
python -m x ;; python -m pytest ;; python3 -m pytest -V ;; python3 -V -m unittest ;;
python ;; python2 a.py ;; python3 -V -c x ;; python3 - ;; python3.9 a.py ;; python3.10 a.py ;;
python3.11 a.py ;; python3.12 a.py ;; python3.13 a.py ;; python3.14 a.py ;; node a.js ;; node -e x ;; node -p x ;;
ruby -e x ;; ruby a.rb ;; perl -e x ;; perl -ve x ;; perl a.pl ;; php -r x ;; php a.php ;; lua a.lua ;; luajit a.lua ;;
Rscript a.R ;; java -jar a.jar ;; java A ;; javac A.java ;; go run . ;; go build ;; go env -w A=b ;; go test ;;
rustc a.rs ;; gcc a.c ;; gcc -o b a.c ;; g++ a.cc ;; cc a.c ;; c++ a.cc ;; clang a.c ;; clang++ a.cc ;; make ;;
make -n ;; make test ;; gmake ;; cmake . ;; cmake --build b ;; ninja ;; mount a b ;; mount -a ;; mount -o remount / ;;
sysctl -w a=1 ;; sysctl a=1 ;; sysctl -p ;; systemctl restart ssh ;; systemctl stop ssh ;; systemctl -H x status ;;
systemctl show ssh ;; systemctl status -M x ;; ip link set eth0 down ;; ip link s eth0 down ;;
ip addr add 1.1.1.1 dev x ;; ip -b a ;; ip netns exec x ls ;; ip -r a ;; ip monitor ;; ip route del x ;;
ifconfig eth0 up ;; ifconfig eth0 1.1.1.1 ;; ss -K ;; ss -D b ;; ss -E ;; ss -r ;; netstat -c ;; docker run x ;;
docker rm x ;; docker exec x ls ;; docker -H tcp://x ps ;; docker logs -f x ;; docker inspect x ;;
docker container prune ;; docker system prune ;; podman run x ;; podman --url x ps ;; podman rm x ;; kubectl get pods ;;
kubectl delete pod x ;; kubectl version ;;
kubectl version --client ;; kubectl config view ;; kubectl apply -f a ;; aws s3 ls ;; uv run x ;;
uv pip install x ;; cargo build ;; cargo tree ;; cargo run ;; cargo +nightly --version ;; npm install ;; npm run x ;;
npm test ;; npm ls ;; podman ps ;; npm view x ;; npm ls --prefix x ;; npm config list ;;
pip install x ;; pip freeze ;; pip list --path x ;;
pip list -o ;; pip list --outdated ;;
pip --python x list ;; pip download x ;; pip show --log b x ;; pip config list ;; pip3 uninstall x ;; 'time' -o x ls ;;
csvcut .env ;; in2csv --write-sheets - a.xlsx ;; csvsql --query x a.csv ;;
brew install x ;;
openssl x509 -in a.crt ;; openssl x509 -in a.crt -noout -out x ;; black --version x ;;
./black --version ;; frobnicate --version ;;
yarn --version ;; mvn --version ;;
find . -exec rm {} \; ;; find . -exec cat x{} \; ;; find . -exec {} \; ;; find . -exec cat {} ;;
find ~ -exec cat {} \; ;;
find .ssh -exec cat {} + ;; find /etc -exec cat {} \; ;; find . -exec sed {} a \; ;; find . -exec jq {} a \; ;;
find . -exec sh -c x {} \; ;;
find . -exec git log {} \; ;; find . -exec cat {} \; -delete ;; find . -execdir cat {} \; ;;
find . -exec ./cat {} \; ;; find . -exec cat .env {} \; ;; find . -exec env {} \; ;;
find . -printf x -exec sort -o {} a \;
"""
"""Lines that do more, or may."""

_NEVER = """
. R act add-apt-repository adduser age anacron ansible ansible-playbook ant apk apt-get apt-mark argocd aria2c arp
as asdf ash aspell at atrm autossh az bash batch bazel bc bg bind blkid bower bq brctl brew buck buildah builtin bun
bundle bundler bunx busctl busybox bw bwrap byobu cabal capsh cfdisk chattr chcon chef chfn chgrp chkconfig chmod
chown chpasswd chronic chroot chrt chsh clear clickhouse-client clojure cmd code compgen complete compopt composer
compress conda convert corepack cp cpan cpanm cpio cpp createdb crictl crontab cryptsetup csh csplit ctest ctr curl
dash dbus-run-session dbus-send dc dconf dd defaults deluser deno depmod dig direnv dirs diskutil disown ditto dnf
doas docker-compose docker-machine doctl dos2unix dotnet dpkg-reconfigure drill dropdb dumpcap e2fsck easy_install
ed eksctl elinks elixir elvish emacs emacsclient enable entr env erl ethtool ex exec exit expect fakeroot fallocate
fc fdisk ffmpeg fg firebase firejail firewall-cmd fish flatpak flock flux fly flyctl fsck ftp gcloud gdb gdbus gdisk
gem getaddrinfo getopts ghci gnuplot gosu gpasswd gpg gpg2 gradle gradlew groovy groupadd groupdel groupmod gs
gsettings gsutil gtimeout guile guix gvim halt hash hatch hdparm helix helm helmfile heroku history host hostnamectl
htop http https husky hx ibmcloud iex influx init initctl insmod install install_name_tool ionice ip6tables iptables
ipython irb istioctl iwconfig jest joe jshell julia jupyter just k9s kak keyctl killall killall5 kind kotlin ksh
ksh93 kustomize latex launchctl ld ldconfig ldd lefthook lein lftp link links linode-cli lldb ln locale-gen
localectl lockf logger loginctl logout losetup ltrace luarocks lvm lvremove lxc lxd lynx m4 machinectl magick mail
mailx mamba mapfile mariadb mesg meson micro micromamba minikube mise mix mkdir mke2fs mkfifo mkfs mkfs.btrfs
mkfs.ext2 mkfs.ext3 mkfs.ext4 mkfs.f2fs mkfs.fat mkfs.ntfs mkfs.vfat mkfs.xfs mknod mksh mkswap mktemp mocha
modprobe mogrify mongo mongosh mosh most msbuild msmtp mtr mutt mv mvn mvnw mysql mysqldump nano nc ncat nerdctl
netcat netlify networksetup nft nice nix nix-build nix-shell nmap nmcli nodejs nohup notify-send nox npx nsenter
nslookup nu nvim nvm objcopy oc oci op opam open osascript packer pacman pandoc parallel parted pass passwd patch
patchelf pbcopy pbpaste pdflatex pdftk pdftotext pdksh pdm perf pg_dump phpunit pico ping ping6 pipx pkexec pkill
plutil pnpm pnpx poetry popd poweroff powershell printenv proot psql pulumi puppet pushd pwsh pyenv pypy pypy3
pytest qemu-img qpdf racket rake ranlib rbash rbenv rc-service rclone read readarray rebar3 reboot redis-cli rename
renice reset resize2fs resolvectl return rm rmdir rmmod route rspec rsync runghc runuser rustup rye say sbcl sbt
scala scons scp screen script sdk secret-tool security sendmail service set setcap setfacl setfattr setpriv setsid
sfdisk sftp sgdisk sh shift shopt shred shutdown skill skopeo snap snice socat sops source spell split sponge
sqlite3 srm ssh ssh-add ssh-agent ssh-copy-id ssh-keygen ssh-keyscan sshfs stack stdbuf strace strip stty su subl
sudo suspend swapoff swapon swift sync systemd-nspawn systemd-run task taskset tc tclsh tcpdump tcsh tee telinit
doctest telnet terraform tftp timedatectl timeout tmux tofu top touch tox toybox tput tracepath traceroute trap trash
trash-put truncate ts-node tshark tsx tune2fs twine ufw umount unalias unbuffer uncompress unix2dos unlink unset
unittest unshare update-alternatives update-rc.d updatedb useradd userdel usermod uvx vagrant valgrind vault vercel
vgchange vi view vim vimdiff vipw virsh virtualenv visudo vitest volta w3m wait wall watch wget wget2 whois wipe wipefs
wish wl-copy
wl-paste wrangler write xargs xattr xclip xdg-open xelatex xh xonsh xsel yarn yash yes yum zcmp zdiff zellij
zip zless zmore zsh
"""
"""Programs that are asked about whatever they are given."""


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.split(";;")]


CASES_A: list[tuple[str, str]] = [
    *((line, "read") for line in _lines(_READ)),
    *((line, "asks") for line in _lines(_ASKS)),
    *((f"{name} x", "asks") for name in _NEVER.split()),
]
