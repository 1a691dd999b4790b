module clo

go 1.26.8
