A="x"
A+=' y'
if [[ $A == "x y" && -n "${B:-}" ]] || ! [ "$A" = "z" ]; then run $A; elif test 1 -lt 2; then echo no; else cat <<EOF
pretrain_gpt.py
EOF
fi
for i in 1 2; do python pretrain_gpt.py; done
case $A in x) deepspeed train.py;; esac
CMD="accelerate launch \"$A\" $((2*(3+A)))"
