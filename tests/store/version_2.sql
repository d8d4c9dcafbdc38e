-- A store as schema 0002 wrote it: one sweep of latency and accuracy, one failed arm. Made once; never to be changed.
BEGIN TRANSACTION;
CREATE TABLE accuracy_row (
	comparison_id VARCHAR NOT NULL, 
	environment VARCHAR NOT NULL, 
	question_id VARCHAR NOT NULL, 
	measured_at VARCHAR NOT NULL, 
	source VARCHAR NOT NULL, 
	analysis_version INTEGER NOT NULL, 
	floor FLOAT NOT NULL, 
	failure INTEGER, 
	images INTEGER, 
	unreadable INTEGER, 
	tokens INTEGER, 
	tokens_final INTEGER, 
	lost INTEGER, 
	gained INTEGER, 
	gmacs_baseline FLOAT, 
	gmacs FLOAT, 
	gmacs_method FLOAT, 
	top1_baseline FLOAT, 
	top1 FLOAT, 
	top1_low FLOAT, 
	top1_high FLOAT, 
	top5_baseline FLOAT, 
	top5 FLOAT, 
	mcnemar_p FLOAT, 
	top1_drop FLOAT, 
	top1_drop_low FLOAT, 
	top1_drop_high FLOAT, 
	kl FLOAT, 
	kl_low FLOAT, 
	kl_high FLOAT, 
	margin_change FLOAT, 
	margin_change_low FLOAT, 
	margin_change_high FLOAT, 
	margin_change_tail FLOAT, 
	verdict VARCHAR, 
	flags VARCHAR NOT NULL, 
	CONSTRAINT pk_accuracy_row PRIMARY KEY (comparison_id, environment), 
	CONSTRAINT ck_accuracy_row_source CHECK (source IN ('measured', 'imported', 'published')), 
	CONSTRAINT ck_accuracy_row_verdict CHECK (verdict IN ('better', 'worse', 'same', 'unclear')), 
	CONSTRAINT ck_accuracy_row_floor CHECK (floor + 0 = floor AND floor < 1e308 AND floor > -1e308 AND floor >= 0), 
	CONSTRAINT ck_accuracy_row_images CHECK (images + 0 = images AND images < 1e308 AND images > -1e308 AND images >= 0), 
	CONSTRAINT ck_accuracy_row_unreadable CHECK (unreadable + 0 = unreadable AND unreadable < 1e308 AND unreadable > -1e308 AND unreadable >= 0), 
	CONSTRAINT ck_accuracy_row_tokens CHECK (tokens + 0 = tokens AND tokens < 1e308 AND tokens > -1e308 AND tokens >= 0), 
	CONSTRAINT ck_accuracy_row_tokens_final CHECK (tokens_final + 0 = tokens_final AND tokens_final < 1e308 AND tokens_final > -1e308 AND tokens_final >= 0), 
	CONSTRAINT ck_accuracy_row_lost CHECK (lost + 0 = lost AND lost < 1e308 AND lost > -1e308 AND lost >= 0), 
	CONSTRAINT ck_accuracy_row_gained CHECK (gained + 0 = gained AND gained < 1e308 AND gained > -1e308 AND gained >= 0), 
	CONSTRAINT ck_accuracy_row_gmacs_baseline CHECK (gmacs_baseline + 0 = gmacs_baseline AND gmacs_baseline < 1e308 AND gmacs_baseline > -1e308 AND gmacs_baseline >= 0), 
	CONSTRAINT ck_accuracy_row_gmacs CHECK (gmacs + 0 = gmacs AND gmacs < 1e308 AND gmacs > -1e308 AND gmacs >= 0), 
	CONSTRAINT ck_accuracy_row_gmacs_method CHECK (gmacs_method + 0 = gmacs_method AND gmacs_method < 1e308 AND gmacs_method > -1e308 AND gmacs_method >= 0), 
	CONSTRAINT ck_accuracy_row_top1_baseline CHECK (top1_baseline + 0 = top1_baseline AND top1_baseline < 1e308 AND top1_baseline > -1e308 AND top1_baseline >= 0), 
	CONSTRAINT ck_accuracy_row_top1 CHECK (top1 + 0 = top1 AND top1 < 1e308 AND top1 > -1e308 AND top1 >= 0), 
	CONSTRAINT ck_accuracy_row_top1_low CHECK (top1_low + 0 = top1_low AND top1_low < 1e308 AND top1_low > -1e308 AND top1_low >= 0), 
	CONSTRAINT ck_accuracy_row_top1_high CHECK (top1_high + 0 = top1_high AND top1_high < 1e308 AND top1_high > -1e308 AND top1_high >= 0), 
	CONSTRAINT ck_accuracy_row_top5_baseline CHECK (top5_baseline + 0 = top5_baseline AND top5_baseline < 1e308 AND top5_baseline > -1e308 AND top5_baseline >= 0), 
	CONSTRAINT ck_accuracy_row_top5 CHECK (top5 + 0 = top5 AND top5 < 1e308 AND top5 > -1e308 AND top5 >= 0), 
	CONSTRAINT ck_accuracy_row_mcnemar_p CHECK (mcnemar_p + 0 = mcnemar_p AND mcnemar_p < 1e308 AND mcnemar_p > -1e308 AND mcnemar_p >= 0), 
	CONSTRAINT ck_accuracy_row_top1_drop CHECK (top1_drop + 0 = top1_drop AND top1_drop < 1e308 AND top1_drop > -1e308), 
	CONSTRAINT ck_accuracy_row_top1_drop_low CHECK (top1_drop_low + 0 = top1_drop_low AND top1_drop_low < 1e308 AND top1_drop_low > -1e308), 
	CONSTRAINT ck_accuracy_row_top1_drop_high CHECK (top1_drop_high + 0 = top1_drop_high AND top1_drop_high < 1e308 AND top1_drop_high > -1e308), 
	CONSTRAINT ck_accuracy_row_kl CHECK (kl + 0 = kl AND kl < 1e308 AND kl > -1e308), 
	CONSTRAINT ck_accuracy_row_kl_low CHECK (kl_low + 0 = kl_low AND kl_low < 1e308 AND kl_low > -1e308), 
	CONSTRAINT ck_accuracy_row_kl_high CHECK (kl_high + 0 = kl_high AND kl_high < 1e308 AND kl_high > -1e308), 
	CONSTRAINT ck_accuracy_row_margin_change CHECK (margin_change + 0 = margin_change AND margin_change < 1e308 AND margin_change > -1e308), 
	CONSTRAINT ck_accuracy_row_margin_change_low CHECK (margin_change_low + 0 = margin_change_low AND margin_change_low < 1e308 AND margin_change_low > -1e308), 
	CONSTRAINT ck_accuracy_row_margin_change_high CHECK (margin_change_high + 0 = margin_change_high AND margin_change_high < 1e308 AND margin_change_high > -1e308), 
	CONSTRAINT ck_accuracy_row_margin_change_tail CHECK (margin_change_tail + 0 = margin_change_tail AND margin_change_tail < 1e308 AND margin_change_tail > -1e308), 
	CONSTRAINT fk_accuracy_row_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id), 
	CONSTRAINT fk_accuracy_row_environment FOREIGN KEY(environment) REFERENCES environment (environment_id), 
	CONSTRAINT fk_accuracy_row_failure FOREIGN KEY(failure) REFERENCES failure (id)
);
INSERT INTO "accuracy_row" VALUES('95b045203d0ff65c','3726d88f8db4b006','f59ca3e0e8547aac','2026-09-21T14:13:20.000Z','imported',1,0.2,NULL,60,0,196,197,2,0,1.96,1.30666666666666664298e+00,0.001,9.16666666666666571892e+01,8.83333333333333285946e+01,7.78212119758291436238e+01,9.42322793599439592106e+01,9.66666666666666714053e+01,9.66666666666666714053e+01,0.5,3.33333333333333348136e+00,-2.88442472134928573623e+00,1.13637742743086072043e+01,7.15659061446785871307e-02,5.4743862701419759853e-02,1.04047828023626484639e-01,1.17984570066134136778e-01,-4.75626465055884350974e-01,0.542437843071594,-2.74433687329292297363e+00,'unclear','');
INSERT INTO "accuracy_row" VALUES('e2e1188b3ed7a0d2','3726d88f8db4b006','d677f7895a1bfb83','2026-09-21T14:13:20.000Z','imported',1,0.2,NULL,60,0,196,197,6,0,1.96,1.30666666666666664298e+00,0.001,9.16666666666666571892e+01,8.16666666666666714053e+01,7.008024625353193926e+01,8.9442203110802367405e+01,9.66666666666666714053e+01,9.83333333333333285946e+01,0.03125,10.0,3.38109626437011678845e+00,2.01494647239869451027e+01,8.00405729639654395235e-02,6.23245881495448697529e-02,1.06527188251371279781e-01,-4.08301201307525229999e-01,-1.02474044532238206528e+00,1.06948496554676086844e-01,-5.12431262135505694033e+00,'worse','');
INSERT INTO "accuracy_row" VALUES('e974e033c6d3c300','3726d88f8db4b006','5ac588cda9ae2b17','2026-09-21T14:13:20.000Z','imported',1,0.2,NULL,60,0,196,197,0,0,1.96,1.30666666666666664298e+00,0.001,9.16666666666666571892e+01,9.16666666666666571892e+01,8.19310579816655888425e+01,9.6387954339826933392e+01,9.66666666666666714053e+01,9.66666666666666714053e+01,1.0,0.0,-6.01718521421939,6.01718521421939200877e+00,0.0786638217046857,6.09576165578663425881e-02,0.114772667016878,8.69678481171528433568e-02,-2.24845498428634826826e-01,4.3655906984291154016e-01,-1.76485480070114131301e+00,'unclear','');
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0002');
CREATE TABLE attempt (
	id INTEGER NOT NULL, 
	digest VARCHAR NOT NULL, 
	job INTEGER, 
	job_id VARCHAR NOT NULL, 
	n INTEGER NOT NULL, 
	round INTEGER NOT NULL, 
	environment VARCHAR NOT NULL, 
	host VARCHAR NOT NULL, 
	started_at FLOAT NOT NULL, 
	ended_at FLOAT NOT NULL, 
	project_commit VARCHAR, 
	source VARCHAR NOT NULL, 
	flags VARCHAR NOT NULL, 
	protocol VARCHAR NOT NULL, 
	readings VARCHAR NOT NULL, 
	document VARCHAR NOT NULL, 
	CONSTRAINT pk_attempt PRIMARY KEY (id), 
	CONSTRAINT ck_attempt_source CHECK (source IN ('measured', 'imported', 'published')), 
	CONSTRAINT ck_attempt_ended_at CHECK (ended_at + 0 = ended_at AND ended_at < 1e308 AND ended_at > -1e308 AND ended_at >= started_at), 
	CONSTRAINT ck_attempt_n CHECK (n + 0 = n AND n < 1e308 AND n > -1e308 AND n > 0), 
	CONSTRAINT ck_attempt_started_at CHECK (started_at + 0 = started_at AND started_at < 1e308 AND started_at > -1e308 AND started_at > 0), 
	CONSTRAINT fk_attempt_environment FOREIGN KEY(environment) REFERENCES environment (environment_id), 
	CONSTRAINT fk_attempt_job FOREIGN KEY(job) REFERENCES job (id), 
	CONSTRAINT uq_attempt_digest UNIQUE (digest)
);
INSERT INTO "attempt" VALUES(1,'6d563a1df2a4ed427155108d074eef31e43e837bfea8f531c4e570d2830c58a4',NULL,'6547771277db3a33',1,0,'3726d88f8db4b006','here',1789999990.0,1790000000.0,'0123abc','imported','','{"budget_s":10.0,"compile_timeout_s":900.0,"half_width":0.01,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{"load":0.5}','{"schema_version":1,"job":{"kind":"latency","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":64,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.3,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.7,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1],[0,2],[0,3]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"contents":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2","torch":"2.0"}},"host":"here","started_at":1789999990.0,"ended_at":1790000000.0,"arms":[{"arm":0,"gmacs":0.16,"gmacs_method":0.0,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":16,"tokens_final":17,"trace":[[17,17]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":512.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":1,"gmacs":0.10666666666666667,"gmacs_method":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":16,"tokens_final":17,"trace":[[17,17]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":513.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":2,"gmacs":0.10666666666666667,"gmacs_method":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":16,"tokens_final":17,"trace":[[17,17]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":514.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":3,"gmacs":0.10666666666666667,"gmacs_method":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":16,"tokens_final":17,"trace":[[17,17]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":515.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]}],"failures":[],"readings":{"load":0.5},"flags":[],"commit":"0123abc"}');
INSERT INTO "attempt" VALUES(2,'589aee0f096ce5f6429d647607153f5064e8e120b52a3025c0071fd099504f79',NULL,'6f2ed2ae4d24ce94',1,0,'3726d88f8db4b006','here',1789999990.0,1790000000.0,'0123abc','imported','','{"budget_s":10.0,"compile_timeout_s":900.0,"half_width":0.01,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{"load":0.5}','{"schema_version":1,"job":{"kind":"latency","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":224,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.3,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.7,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1],[0,2],[0,3]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"contents":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2","torch":"2.0"}},"host":"here","started_at":1789999990.0,"ended_at":1790000000.0,"arms":[{"arm":0,"gmacs":1.96,"gmacs_method":0.0,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":196,"tokens_final":197,"trace":[[197,197]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":512.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":1,"gmacs":1.3066666666666666,"gmacs_method":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":196,"tokens_final":197,"trace":[[197,197]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":513.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":2,"gmacs":1.3066666666666666,"gmacs_method":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":196,"tokens_final":197,"trace":[[197,197]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":514.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]}],"failures":[{"arm":3,"reason":"out_of_memory","message":"no room","detail":""}],"readings":{"load":0.5},"flags":[],"commit":"0123abc"}');
INSERT INTO "attempt" VALUES(3,'4890ac6b9a037a0df0b07c23542cc777592228ee07b4f4f02398bf25c2f165ce',NULL,'d01b10b19ad358dd',1,0,'3726d88f8db4b006','here',1789999990.0,1790000000.0,'0123abc','imported','','{"budget_s":10.0,"compile_timeout_s":900.0,"half_width":0.01,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{"load":0.5}','{"schema_version":1,"job":{"kind":"accuracy","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":224,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0,"data":"digits"},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.3,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.7,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1],[0,2],[0,3]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"contents":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2","torch":"2.0"}},"host":"here","started_at":1789999990.0,"ended_at":1790000000.0,"arms":[{"arm":0,"gmacs":1.96,"gmacs_method":0.0,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":196,"tokens_final":197,"trace":[[197,197]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":512.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":1,"gmacs":1.3066666666666666,"gmacs_method":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":196,"tokens_final":197,"trace":[[197,197]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":513.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":2,"gmacs":1.3066666666666666,"gmacs_method":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":196,"tokens_final":197,"trace":[[197,197]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":514.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]},{"arm":3,"gmacs":1.3066666666666666,"gmacs_method":0.001,"parameters":5717416,"trainable_parameters":5717416,"batch":1,"tokens":196,"tokens_final":197,"trace":[[197,197]],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[{"name":"peak_rss","value":515.0,"unit":"MiB","low":null,"high":null,"n":null}],"flags":[]}],"failures":[],"readings":{"load":0.5},"flags":[],"commit":"0123abc"}');
CREATE TABLE break_even_row (
	sweep INTEGER NOT NULL, 
	curve_id VARCHAR NOT NULL, 
	environment VARCHAR NOT NULL, 
	axis VARCHAR NOT NULL, 
	crossing INTEGER NOT NULL, 
	comparison_id VARCHAR NOT NULL, 
	threads INTEGER, 
	verdict VARCHAR NOT NULL, 
	x FLOAT, 
	x_low FLOAT, 
	x_high FLOAT, 
	direction VARCHAR, 
	grid_limited BOOLEAN, 
	points INTEGER NOT NULL, 
	why VARCHAR NOT NULL, 
	floor FLOAT NOT NULL, 
	analysis_version INTEGER NOT NULL, 
	varies VARCHAR, 
	CONSTRAINT pk_break_even_row PRIMARY KEY (sweep, curve_id, environment, axis, crossing), 
	CONSTRAINT ck_break_even_row_axis CHECK (axis IN ('tokens', 'gmacs', 'gmacs_saved')), 
	CONSTRAINT ck_break_even_row_direction CHECK (direction IN ('gains', 'loses')), 
	CONSTRAINT ck_break_even_row_verdict CHECK (verdict IN ('crossing', 'always', 'never', 'unclear')), 
	CONSTRAINT ck_break_even_row_points CHECK (points + 0 = points AND points < 1e308 AND points > -1e308 AND points >= 0), 
	CONSTRAINT ck_break_even_row_x CHECK (x + 0 = x AND x < 1e308 AND x > -1e308), 
	CONSTRAINT ck_break_even_row_x_high CHECK (x_high + 0 = x_high AND x_high < 1e308 AND x_high > -1e308), 
	CONSTRAINT ck_break_even_row_x_low CHECK (x_low + 0 = x_low AND x_low < 1e308 AND x_low > -1e308), 
	CONSTRAINT fk_break_even_row_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id), 
	CONSTRAINT fk_break_even_row_environment FOREIGN KEY(environment) REFERENCES environment (environment_id), 
	CONSTRAINT fk_break_even_row_sweep FOREIGN KEY(sweep) REFERENCES sweep (id)
);
INSERT INTO "break_even_row" VALUES(1,'60dee36d4c9be9e1','3726d88f8db4b006','tokens',0,'b9e8bb028c503621',2,'crossing',3.38124052692005108147e+01,16.0,196.0,'gains',1,2,'Begins to pay between tokens = 16 and 196 (neighbouring points). Along tokens: slower at 16, faster at 196.',0.01,2,NULL);
INSERT INTO "break_even_row" VALUES(1,'60dee36d4c9be9e1','3726d88f8db4b006','gmacs',0,'b9e8bb028c503621',2,'crossing',3.3812405269200512814e-01,0.16,1.96,'gains',1,2,'Begins to pay between gmacs = 0.16 and 1.96 (neighbouring points). Along gmacs: slower at 0.16, faster at 1.96.',0.01,2,NULL);
INSERT INTO "break_even_row" VALUES(1,'6f03b8691c63fdb6','3726d88f8db4b006','tokens',0,'504525e3be872db0',2,'crossing',3.93101305896766959344e+01,16.0,196.0,'gains',1,2,'Begins to pay between tokens = 16 and 196 (neighbouring points). Along tokens: slower at 16, faster at 196.',0.01,2,NULL);
INSERT INTO "break_even_row" VALUES(1,'6f03b8691c63fdb6','3726d88f8db4b006','gmacs',0,'504525e3be872db0',2,'crossing',3.93101305896767061476e-01,0.16,1.96,'gains',1,2,'Begins to pay between gmacs = 0.16 and 1.96 (neighbouring points). Along gmacs: slower at 0.16, faster at 1.96.',0.01,2,NULL);
INSERT INTO "break_even_row" VALUES(1,'d327af798a29b4fc','3726d88f8db4b006','tokens',0,'5bae8cee2922af7f',2,'unclear',NULL,NULL,NULL,NULL,NULL,1,'One point is not a curve. Along tokens: slower at 16.',0.01,2,NULL);
INSERT INTO "break_even_row" VALUES(1,'d327af798a29b4fc','3726d88f8db4b006','gmacs',0,'5bae8cee2922af7f',2,'unclear',NULL,NULL,NULL,NULL,NULL,1,'One point is not a curve. Along gmacs: slower at 0.16.',0.01,2,NULL);
CREATE TABLE comparison (
	comparison_id VARCHAR NOT NULL, 
	question_id VARCHAR NOT NULL, 
	curve_id VARCHAR NOT NULL, 
	arm_id VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	device VARCHAR NOT NULL, 
	model VARCHAR NOT NULL, 
	weights VARCHAR NOT NULL, 
	image_size INTEGER NOT NULL, 
	batch_size INTEGER NOT NULL, 
	threads INTEGER, 
	dtype VARCHAR NOT NULL, 
	attention VARCHAR NOT NULL, 
	runtime VARCHAR NOT NULL, 
	seed INTEGER NOT NULL, 
	method VARCHAR NOT NULL, 
	params VARCHAR NOT NULL, 
	baseline VARCHAR NOT NULL, 
	document VARCHAR NOT NULL, 
	contents VARCHAR NOT NULL, data VARCHAR, corruption VARCHAR, severity INTEGER, 
	CONSTRAINT pk_comparison PRIMARY KEY (comparison_id), 
	CONSTRAINT ck_comparison_batch_size CHECK (batch_size + 0 = batch_size AND batch_size < 1e308 AND batch_size > -1e308 AND batch_size > 0), 
	CONSTRAINT ck_comparison_image_size CHECK (image_size + 0 = image_size AND image_size < 1e308 AND image_size > -1e308 AND image_size > 0)
);
INSERT INTO "comparison" VALUES('21fd833d12c39f54','7bc9f166576d8071','6f03b8691c63fdb6','cd3a9678c7b7f3d7','latency','cpu','deit_tiny_patch16_224','random',224,1,NULL,'float32','sdpa','eager',0,'topk','{"keep_rate":0.3,"layers":[3,6,9]}','dense','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.3,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":224,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"latency"}','{}',NULL,NULL,NULL);
INSERT INTO "comparison" VALUES('340694a37c90f489','8d1c45e173ffc4ce','60dee36d4c9be9e1','212af6ab5482de97','latency','cpu','deit_tiny_patch16_224','random',224,1,NULL,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}','dense','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":224,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"latency"}','{}',NULL,NULL,NULL);
INSERT INTO "comparison" VALUES('504525e3be872db0','0783abb7a018c837','6f03b8691c63fdb6','cd3a9678c7b7f3d7','latency','cpu','deit_tiny_patch16_224','random',64,1,NULL,'float32','sdpa','eager',0,'topk','{"keep_rate":0.3,"layers":[3,6,9]}','dense','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.3,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":64,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"latency"}','{}',NULL,NULL,NULL);
INSERT INTO "comparison" VALUES('5bae8cee2922af7f','9e4f6f298bc67be1','d327af798a29b4fc','efb30afbeeaa3183','latency','cpu','deit_tiny_patch16_224','random',64,1,NULL,'float32','sdpa','eager',0,'topk','{"keep_rate":0.7,"layers":[3,6,9]}','dense','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.7,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":64,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"latency"}','{}',NULL,NULL,NULL);
INSERT INTO "comparison" VALUES('95b045203d0ff65c','f59ca3e0e8547aac','9fc9332c31b5a34d','212af6ab5482de97','accuracy','cpu','deit_tiny_patch16_224','random',224,1,NULL,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}','dense','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"data":"digits","device":"cpu","dtype":"float32","image_size":224,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"accuracy"}','{}','digits',NULL,NULL);
INSERT INTO "comparison" VALUES('b9e8bb028c503621','ca7cccb30b9363f1','60dee36d4c9be9e1','212af6ab5482de97','latency','cpu','deit_tiny_patch16_224','random',64,1,NULL,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5,"layers":[3,6,9]}','dense','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":64,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"latency"}','{}',NULL,NULL,NULL);
INSERT INTO "comparison" VALUES('cbd1c83d70d484a5','7d69d449c89aabd5','d327af798a29b4fc','efb30afbeeaa3183','latency','cpu','deit_tiny_patch16_224','random',224,1,NULL,'float32','sdpa','eager',0,'topk','{"keep_rate":0.7,"layers":[3,6,9]}','dense','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.7,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":224,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"latency"}','{}',NULL,NULL,NULL);
INSERT INTO "comparison" VALUES('e2e1188b3ed7a0d2','d677f7895a1bfb83','13a64187aa5bfe7d','cd3a9678c7b7f3d7','accuracy','cpu','deit_tiny_patch16_224','random',224,1,NULL,'float32','sdpa','eager',0,'topk','{"keep_rate":0.3,"layers":[3,6,9]}','dense','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.3,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"data":"digits","device":"cpu","dtype":"float32","image_size":224,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"accuracy"}','{}','digits',NULL,NULL);
INSERT INTO "comparison" VALUES('e974e033c6d3c300','5ac588cda9ae2b17','0f3fc0bb43c2c89a','efb30afbeeaa3183','accuracy','cpu','deit_tiny_patch16_224','random',224,1,NULL,'float32','sdpa','eager',0,'topk','{"keep_rate":0.7,"layers":[3,6,9]}','dense','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.7,"layers":[3,6,9]},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"data":"digits","device":"cpu","dtype":"float32","image_size":224,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"accuracy"}','{}','digits',NULL,NULL);
CREATE TABLE environment (
	environment_id VARCHAR NOT NULL, 
	device VARCHAR NOT NULL, 
	device_name VARCHAR NOT NULL, 
	facts VARCHAR NOT NULL, 
	CONSTRAINT pk_environment PRIMARY KEY (environment_id)
);
INSERT INTO "environment" VALUES('3726d88f8db4b006','cpu','Imaginary CPU','{"cores":"2","torch":"2.0"}');
CREATE TABLE evaluation (
	attempt INTEGER NOT NULL, 
	images INTEGER NOT NULL, 
	unreadable INTEGER NOT NULL, 
	classes INTEGER NOT NULL, 
	listing VARCHAR NOT NULL, 
	document BLOB NOT NULL, 
	CONSTRAINT pk_evaluation PRIMARY KEY (attempt), 
	CONSTRAINT ck_evaluation_images CHECK (images + 0 = images AND images < 1e308 AND images > -1e308 AND images > 0), 
	CONSTRAINT ck_evaluation_unreadable CHECK (unreadable + 0 = unreadable AND unreadable < 1e308 AND unreadable > -1e308 AND unreadable >= 0), 
	CONSTRAINT fk_evaluation_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
INSERT INTO "evaluation" VALUES(3,60,0,10,'ab',X'789CED96DBEFAB3612C7FF97DF2B95020402EE9BC19000016C6E21547DE016C2255C42020955FFF7D26E2F677BB647BBDAD5EAACB47EC123E3613CF3E1EBF9E1A3BCC5453E7E7CBBA3BFF9489B781C7F3698D568E2246FD6F907FCCAC7C71A6B393ECAB658838D93D57CB6F73CCEE2A4C93FBEFDEEFB6F3EE2FB6D3DC8773FFC3CF9F8763D5B7FCFB3327DE4D967C753FE98CEFF4A103E94C997D6952F2D7E71ACE7B9C76DFDBF11E92DBE1765BBC6FAE4F76762B68F932269878303715034C42A8E2E2D271745D96C83FD95C809F07C18C4720F4556A4667D975E6A091C341546C18B10D3ED8E3E2CAE0603ADD0B589440EB122CFDC418547E99513A39B4A44C191B3A0B99D0502431FD3E825051994F65448E0F964F992F266261848B7E72476D54D4141A7E8D0B8500EB18320F1E1D46B0D4CFC792292D1DE6A1815710479D6F089BD64B52FED1EF70AAA6AAE11E971B9D4C86EDA08B68613126DAB163E744C8D817B899F881D9DCF356C4E4306875AE109ACB69D222D831640D24526C1D29CF8C83BD401D4A22120D02C4B5AA2C3E00549E8F3C4B8B5A58FDAAEE7E1C78FDFFC8A2BF38F70353F2FD65F41307FFAFC6D9FFF27FBDF85E00F3F7FC6F5AB8EF4775C77C788237250553EF215A982D7F74D263A48D672F9A1356C3846BC1074CA1A05E9EE8A9FE6B4EEC4CC5C5C4B37A2F5506B4681689CD5D7B0A01C1D1E0E3420BA6B5C57DC971D0F4F6C924EB45FA68AE4BDDF0EE4106DCE6ABC5B71D2936847A554E911B5A80E350A42308AAC9246B34DB10E0DF769116F964C12C9A11763453A422D8301BC2564DFEA2D2D4F1B3983D5C6DE90A36AB6EB7E678D5FD51F4772C402F1E5ADD85990E7A2135138D3A39109A20696F170246AB9896AC45CFA0CD6E9FE4ECC64B17D7938330D04EE2D273A941A1AE6E4BCFAAF8C861C99D8AEE17B6804A89F1F1AB18FF782460352984F7065FF84EBDF15FBBFAA59E89FF1FC09AE5F7FA4BFE3DAB8DC65D66F11F151ED36575827CA8628955CD2EBE7A3617356A4555D4B31ADA58C567B08264A98B8252A6A29808205DFB9C9139D8AD6F71FD6998795CD774495C7BA861BE16D416C6E11C15A62D490243C03AF8BC811D8FABD82B290CDE0E2EC55827774E14B86758B375827FEAC9ACB1589EF130D2095CB2A51057CA6A54BD75F571D640B62974656CBB7C195A0EA3F47B297BBAE468BEE60B80F2F88C0788C7DE9697B1934E688253A03D675041507A60799220628EC54BE96AB3AE2FD7B556FAE5AFDEDEA9D0E3D681604F5AF819663E1F080537DCD085AF886965FBB4185C6609C89BD11265AC24DAC7F82EBF6FFCDC097D6FF33CDC0C5317A628177E8CB4DAC591040DB252ACA2E355422EBB6E907C32270566E3404976D030F7BF334DB48746B940A7E049F9ADB106487F98ACFB16FE0664A47020506D2F2CC2E2F6808FB9A1C95475743DCAD6A8C778D49EC5D91D112259E5E10E48F9E48233F2D40D9A1044E6567CEBABB1F1584F5F572562D7724DAD15AD570A1D915DFCD64E1E8EE5535C245A4C2C756E6885D9DCF0A92C5C9DE74D9D525C8E52C459A43558725B5FA37A5CBB0AAA5D249F0C16616516CE3AA4867D0ADCD4272F5894A05FDAADE3AC9A01B046F821AADF1E12578F730D2A823D9AB97616D36AE1A0F63403CA2A88DEF432DD9652BAE6B13DBC7E5FD6F5D6C128F7953B6F92FADEC6F3D42DDAC894ED852C7C1F6E17A6C55F41C18EE4707E782F7464B7E7D15604BAB774C6220A097902E1A688C71871FD5FB56CD7B3916A9C364DCF0B53828CB32EC2B05B03B1B63927B5335DFCFA326360F52E0D4D0186F6B351311F5BD91E3EE814A44AB0815E0F4E623FC8CC5A9DA3E8BDE04D24171B1AB972DDA852DE583C789DC70FA100DF4F6504400B5B1256C519D52BD7DE274C094DE079C2C8EB57005EE5250D0538D2F7D972CAFE25CA780CA831B4E5E1BD1A31BE9E6032BBB57D8554350BD46365200C5DA31BE7852ECCD35DA9A80C0D4C7B182C46512849950EB1D6D637FD3DDBD97CA9011DCE568C049644615FF9EDE33F845173E4F2FFB6B7A45ADAC700E22D7DB11D6A081C68E3EBE07D2C69BED14CC403848105F745DF5B877D1FB223D3F052CEBD8F2845DEBA62061671B87561122A6BF9BB338C9968487CB2DF696282E45C0D532C1F96DB116966584B338BAA73B56EA7D8B58A78C1431D24319A7BBC1F4DE50B73BF1D9661ECEE925F6DEF6233541EBF2DA5A1EBE46EFE7ADD2C43C2403B6A938A898907050AC828C60D4FA9AC778375C50C5FA0F60C718D88A2E9CC30CAE4E75C1E7FB335855B92908B0F74F0587C076D1F6E2B905A023E460A5A70E1E7D47C92C36234B6C6634B2653E28F15A4E3B7BE1E7D5699130F67B08908B799C207383B6ED5E9CC5BF48EFF6D7F4CAAA196099F1FC6AAB49F32C0ECE5ABD4B633D1796D7695F9479E0E2A07E98880761AF8196CAEF388EC40D626AAB8754493B0F1C32C1B112648244602C9711CBF9AB5CB6D732E3C496121A2C17E9B67A13DF2082C9F3250E5F5454BDCAE39282450D22DC9AA258CD8249D122C73607FCA0BD1131FBB048A91CAFF4248F17B3D09793488BC1C1C31876E7A7C7982605C5410F13EC3881BC00632FA5E288A6F5A6E2F707C40FE7058244E44A5C3C8D062D8BA471E0799A279C0F5D5CB1ED46A38199E93386BA5B2ECBB6F1396A4A5C0D07777CAE584BAB4DF08C5D07275251A0199BFA597C3D6B01F750483CB6E8726EA5F7FB1F7F022266B517');
CREATE TABLE failure (
	id INTEGER NOT NULL, 
	attempt INTEGER NOT NULL, 
	arm INTEGER, 
	reason VARCHAR NOT NULL, 
	message VARCHAR NOT NULL, 
	detail VARCHAR NOT NULL, 
	CONSTRAINT pk_failure PRIMARY KEY (id), 
	CONSTRAINT fk_failure_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
INSERT INTO "failure" VALUES(1,2,3,'out_of_memory','no room','');
CREATE TABLE job (
	id INTEGER NOT NULL, 
	job_id VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	device VARCHAR NOT NULL, 
	state VARCHAR NOT NULL, 
	attempts INTEGER NOT NULL, 
	owner VARCHAR, 
	renewed_at FLOAT, 
	parent INTEGER, 
	queued_at FLOAT NOT NULL, 
	document VARCHAR NOT NULL, 
	CONSTRAINT pk_job PRIMARY KEY (id), 
	CONSTRAINT ck_job_state CHECK (state IN ('waiting', 'running', 'done', 'failed', 'cancelled', 'split')), 
	CONSTRAINT ck_job_attempts CHECK (attempts + 0 = attempts AND attempts < 1e308 AND attempts > -1e308 AND attempts >= 0), 
	CONSTRAINT fk_job_parent FOREIGN KEY(parent) REFERENCES job (id)
);
INSERT INTO "job" VALUES(1,'6547771277db3a33','latency','cpu','waiting',0,NULL,NULL,NULL,1.79528550531741237644e+09,'{"kind":"latency","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":64,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0,"data":null,"corruption":null,"severity":null},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.3,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.7,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1],[0,2],[0,3]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"compile_timeout_s":900.0,"rounds":1,"images":null},"contents":{},"round":0}');
INSERT INTO "job" VALUES(2,'6f2ed2ae4d24ce94','latency','cpu','waiting',0,NULL,NULL,NULL,1.79528550531794881817e+09,'{"kind":"latency","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":224,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0,"data":null,"corruption":null,"severity":null},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.3,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.7,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1],[0,2],[0,3]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"compile_timeout_s":900.0,"rounds":1,"images":null},"contents":{},"round":0}');
INSERT INTO "job" VALUES(3,'d01b10b19ad358dd','accuracy','cpu','waiting',0,NULL,NULL,NULL,1.795285505318259716e+09,'{"kind":"accuracy","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":224,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0,"data":"digits","corruption":null,"severity":null},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.3,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.7,"layers":[3,6,9]},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1],[0,2],[0,3]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.01,"budget_s":10.0,"timeout_s":300.0,"compile_timeout_s":900.0,"rounds":1,"images":null},"contents":{},"round":0}');
CREATE TABLE measured_arm (
	attempt INTEGER NOT NULL, 
	arm INTEGER NOT NULL, 
	arm_id VARCHAR NOT NULL, 
	gmacs FLOAT NOT NULL, 
	gmacs_method FLOAT NOT NULL, 
	parameters BIGINT NOT NULL, 
	trainable_parameters BIGINT NOT NULL, 
	batch INTEGER NOT NULL, 
	tokens INTEGER NOT NULL, 
	tokens_final INTEGER NOT NULL, 
	threads INTEGER NOT NULL, 
	flags VARCHAR NOT NULL, 
	CONSTRAINT pk_measured_arm PRIMARY KEY (attempt, arm), 
	CONSTRAINT ck_measured_arm_batch CHECK (batch + 0 = batch AND batch < 1e308 AND batch > -1e308 AND batch > 0), 
	CONSTRAINT ck_measured_arm_gmacs CHECK (gmacs + 0 = gmacs AND gmacs < 1e308 AND gmacs > -1e308 AND gmacs >= 0), 
	CONSTRAINT ck_measured_arm_gmacs_method CHECK (gmacs_method + 0 = gmacs_method AND gmacs_method < 1e308 AND gmacs_method > -1e308 AND gmacs_method >= 0), 
	CONSTRAINT ck_measured_arm_threads CHECK (threads + 0 = threads AND threads < 1e308 AND threads > -1e308 AND threads > 0), 
	CONSTRAINT ck_measured_arm_tokens CHECK (tokens + 0 = tokens AND tokens < 1e308 AND tokens > -1e308 AND tokens >= 0), 
	CONSTRAINT ck_measured_arm_tokens_final CHECK (tokens_final + 0 = tokens_final AND tokens_final < 1e308 AND tokens_final > -1e308 AND tokens_final >= 0), 
	CONSTRAINT fk_measured_arm_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
INSERT INTO "measured_arm" VALUES(1,0,'6cb99fb9c27e3323',0.16,0.0,5717416,5717416,1,16,17,2,'');
INSERT INTO "measured_arm" VALUES(1,1,'cd3a9678c7b7f3d7',1.06666666666666673513e-01,0.001,5717416,5717416,1,16,17,2,'');
INSERT INTO "measured_arm" VALUES(1,2,'212af6ab5482de97',1.06666666666666673513e-01,0.001,5717416,5717416,1,16,17,2,'');
INSERT INTO "measured_arm" VALUES(1,3,'efb30afbeeaa3183',1.06666666666666673513e-01,0.001,5717416,5717416,1,16,17,2,'');
INSERT INTO "measured_arm" VALUES(2,0,'6cb99fb9c27e3323',1.96,0.0,5717416,5717416,1,196,197,2,'');
INSERT INTO "measured_arm" VALUES(2,1,'cd3a9678c7b7f3d7',1.30666666666666664298e+00,0.001,5717416,5717416,1,196,197,2,'');
INSERT INTO "measured_arm" VALUES(2,2,'212af6ab5482de97',1.30666666666666664298e+00,0.001,5717416,5717416,1,196,197,2,'');
INSERT INTO "measured_arm" VALUES(3,0,'6cb99fb9c27e3323',1.96,0.0,5717416,5717416,1,196,197,2,'');
INSERT INTO "measured_arm" VALUES(3,1,'cd3a9678c7b7f3d7',1.30666666666666664298e+00,0.001,5717416,5717416,1,196,197,2,'');
INSERT INTO "measured_arm" VALUES(3,2,'212af6ab5482de97',1.30666666666666664298e+00,0.001,5717416,5717416,1,196,197,2,'');
INSERT INTO "measured_arm" VALUES(3,3,'efb30afbeeaa3183',1.30666666666666664298e+00,0.001,5717416,5717416,1,196,197,2,'');
CREATE TABLE metric_row (
	attempt INTEGER NOT NULL, 
	arm INTEGER NOT NULL, 
	metric VARCHAR NOT NULL, 
	value FLOAT NOT NULL, 
	unit VARCHAR NOT NULL, 
	low FLOAT, 
	high FLOAT, 
	n INTEGER, 
	CONSTRAINT pk_metric_row PRIMARY KEY (attempt, arm, metric), 
	CONSTRAINT ck_metric_row_high CHECK (high + 0 = high AND high < 1e308 AND high > -1e308), 
	CONSTRAINT ck_metric_row_low CHECK (low + 0 = low AND low < 1e308 AND low > -1e308), 
	CONSTRAINT ck_metric_row_n CHECK (n + 0 = n AND n < 1e308 AND n > -1e308 AND n >= 0), 
	CONSTRAINT ck_metric_row_value CHECK (value + 0 = value AND value < 1e308 AND value > -1e308), 
	CONSTRAINT fk_metric_row_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
INSERT INTO "metric_row" VALUES(1,0,'peak_rss',512.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(1,1,'peak_rss',513.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(1,2,'peak_rss',514.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(1,3,'peak_rss',515.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(2,0,'peak_rss',512.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(2,1,'peak_rss',513.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(2,2,'peak_rss',514.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(3,0,'peak_rss',512.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(3,1,'peak_rss',513.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(3,2,'peak_rss',514.0,'MiB',NULL,NULL,NULL);
INSERT INTO "metric_row" VALUES(3,3,'peak_rss',515.0,'MiB',NULL,NULL,NULL);
CREATE TABLE pairing (
	comparison_id VARCHAR NOT NULL, 
	attempt INTEGER NOT NULL, 
	baseline INTEGER NOT NULL, 
	arm INTEGER NOT NULL, 
	failure INTEGER, 
	CONSTRAINT pk_pairing PRIMARY KEY (comparison_id, attempt), 
	CONSTRAINT fk_pairing_attempt FOREIGN KEY(attempt) REFERENCES attempt (id), 
	CONSTRAINT fk_pairing_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id), 
	CONSTRAINT fk_pairing_failure FOREIGN KEY(failure) REFERENCES failure (id)
);
INSERT INTO "pairing" VALUES('504525e3be872db0',1,0,1,NULL);
INSERT INTO "pairing" VALUES('b9e8bb028c503621',1,0,2,NULL);
INSERT INTO "pairing" VALUES('5bae8cee2922af7f',1,0,3,NULL);
INSERT INTO "pairing" VALUES('21fd833d12c39f54',2,0,1,NULL);
INSERT INTO "pairing" VALUES('340694a37c90f489',2,0,2,NULL);
INSERT INTO "pairing" VALUES('cbd1c83d70d484a5',2,0,3,1);
INSERT INTO "pairing" VALUES('e2e1188b3ed7a0d2',3,0,1,NULL);
INSERT INTO "pairing" VALUES('95b045203d0ff65c',3,0,2,NULL);
INSERT INTO "pairing" VALUES('e974e033c6d3c300',3,0,3,NULL);
CREATE TABLE sample (
	attempt INTEGER NOT NULL, 
	rounds INTEGER NOT NULL, 
	columns INTEGER NOT NULL, 
	arms VARCHAR NOT NULL, 
	"inner" VARCHAR NOT NULL, 
	stopped VARCHAR NOT NULL, 
	seconds BLOB NOT NULL, 
	device_seconds BLOB, 
	run_order BLOB NOT NULL, 
	CONSTRAINT pk_sample PRIMARY KEY (attempt), 
	CONSTRAINT fk_sample_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
INSERT INTO "sample" VALUES(1,31,4,'[0, 1, 2, 3]','[1, 1, 1, 1]','half_width',X'78010D937D34D5771CC76D9D6A9E8E5B39914C3AD5D854E660BAA8B7871032F2741DCA667633B1734263D291CEFD7EBFB7AF9575AB31221B5794C934B1E350D6758F87D49DDD9DE6329C699E9A8B63B68379D8EFEFCF79BF3FE7FD3AEF77FBF2AEA1EC4B04B2DE3D4DF3D738244EE1C9BA7186199BFE0D653729D4865F0E0FC713784775EE91347018B8145B8C9ACA9130DD7D2C5A45E1BD682D7A339A60D75C95B5530047BC2D33752F639044F53A582928BACD14E2C4D709E61C9F8FF97FC1B13152B61294CDF0D758497CC1690A656E9F73AAE07F7B6A2966827024C8794A868EC1727AD2A4A68B22BBE48E78DF398241BD7952C7DF1C8FB3CF4CF69630B85687DB7A575028DC6DA599F708BA2FB9DC529573E4F9A449FC0A1902C7B39A1D4F529405546A673F229018A4CF18D770A47A7E1B3EC118FA5DE75F0B92516856DE18E7E9C2FF8016D1DE360EAB91AB3FCD3D63089379FE9925F88B42FE39D514437044399661ADE098D26D97FBCD32DCDDBC7B7DF00F8A1F467F8D38262668B857E27B7D95E3BE247F2A5624C7BEEABDB33B5B281AB68D9C555D2608B5F96CA719E53011152D2C6F97235CDF1CB27585C2501754E03440F07B66F08EB8398E99DEA0A3012F186AC39215FC3885F893D68B55E705BE22E36A5507C789E2B697BA4C86BC912785B54A0AB7A78E1E590A02A7942B6B1F7472B4CF1426E82E308858BD34F58CA02F3E186AF231C1C1EFE2F409211C217DA5111576724C9827BAD10C8A881FFF9BB0BB4270D7247F5BDD650E7BAFAEBCD336724477E43AEEEFA7B05F78BCF86EA9C0A7EE8083DA88A3A675C5F95C0783A36281DD6FA4B0BDD166D1554FE0EB76FE997B1AC7FB45C17397F7CB21A317D8A7FE14ED39D2C65081DF163FF1C3777E13FAD333FA4B80A00FB630BA98B646916EA4D4AB0941FCD602BDC7598E4ED7992D9FD73224E6EE369F09A73870B8A0E2C4218293B9BD05C62A8E25BBC2E00F5F325C3D5AAF6B7941F1C0C3D22B2B82A0916B9E7B1AE6A3A7B823A9F17B861EFF9B6DD2710A3FADB1F96121FFD3DAD5BC1BC91CA7EAD9CFAB1A86F24EBDBD91D0AF589315D34819C1AB5BB79F44677094D6594E6A321834D6EFC56FF0A1485CF77D3BE42B82B5A16BB55D031CE99B7CFF1D6C66507BBA94F54750982D24C50ED408F98FB45A88FD398E074E0E6FFE5AE86FCA23897303C5C6D226A5781341A94F58CCE2038E6FACF25D2BCB857BC0FCC280B0AF35A3AAB2A94C02ED92FDFCE01D0EB555768CC12B8621E98E485B2985FB7563F9949AC04133AD8AEBE6F04D0F5FEA9C675006E6697334148FB8B63F4A4990637548FB561FC7FAB29F4EAB6678186A5A54E945F13F206BD7B1',NULL,X'7801858E090AC0300CC3D6EDFF7F6EC4503166B040680E5BE9BADEB8E77926D7A4359BEE99B1678E9E9AD09B333424D1737B7D68F2AE379A9FBA66DBF3CA922FA7FD7AFC4FF7E8BF78CD91CF8B1E1E21979A79EED092FE71CAE3CB9B32D9FFF97B6F0F83D8B7AC00BB');
INSERT INTO "sample" VALUES(2,31,3,'[0, 1, 2]','[1, 1, 1]','half_width',X'78010D92FF4FCC711CC7F3A592234DCA15A575BEDC95EE8BD11796E7DA2A5C5F840AB3D6171A8A6E752BDC3B7BDFB5776CFD509DD68E19358AC994DABAA42FE75CC5B5CABA85EE302D5D961252DA507CFE81E7EBF17A3E1FCF7E6FFA7049C3B0FC49BD705F144142E490B6B79922DDC7F62B5DCDD0D4D2291489082E3AB96C975651388CBA8C361A183AD56D634E5A02A1C4B1F7F4010AF5D649CFD950869A9FD5056B0504CE672FDD892BA630AFD1869D5CCAD0D1D75ABA1B0411611F5CBD7C291C673F5AAB1319AE1C591F552E24487B90B3839EA1581994A1D2943358E73DFA4C3A826B4DDBDA6E5EA0F874B4AE789989E3091CF714F911C4B6864B526F536877FB6516D43114DD1C9C5897446052E457874653046A62A67BE40CDB564ABC2BC5046D53A7BE182AB8BFF401BAE06886C8A4B6E8718EE785AB61D23F9FC26E495F9DA06398DA5B177F3585E0F981D1B0062EDF2D6E2E457F8C2171D052AFE4FA19B9BBE997D248319296BAA3CBCCE58873BD79F32AF4D84F98972E504CC49BB3278D0CCAB284CAE46202B9EF46B7441D85AD31A5302F8B21C2BD684B5033C1685961ACC54D0D17ABBC54666390DAF56F780F092CC9FAA161EEAEC2FADD73620F43EC48ED3F593C41E3ADD5527E0B8524BCCBAB2B84C1D46D7F24CE22E8AD37E4B4D45008DBDF2CD22A06B56FB36BE85F15A64D8DAFBA6329C26E880FAE3AC5D067CD8BD8B5A0C2AECBB2AD066735F2BF66197FA43174CFD594946412F0F2F69905E7297E9CFBAC2C1B6030BAF003B3399E2555EEF742381FEC259BDB6FAD60E8DD2FE16D394C902CFF361CD74AE157D1B1FE65038385BF772A97DBFDFACCAAA7029E1A0ABE091B82191C6ADF4765717B853B8D9DE9ECA7E86FCE7CABBCCCA0F1C9E0DBDF713D0B6234522D4593EB7089F93883BFCDA741B493C0B136F2BE22802228BCF4CE21CEAB88C59645BD8A40663C5EF8E731C5136F872219E7E1744D7ED2AC17C1FE19696483A31AC14775E5AFB319323D1C06141D0467CF993EF9A752FC071AC25087',NULL,X'78017D8F0B0A00210805ADFB1FBA2619109184E57D357647C4BA1F03EEC712F5F5AA86776D8F13F09EE3E391FD727ABD83E7AE39BABEC10E537BE6DDF3BE7D51DF3DB45CD40399E97626F37F1E45CC005E');
CREATE TABLE speedup_row (
	comparison_id VARCHAR NOT NULL, 
	environment VARCHAR NOT NULL, 
	metric VARCHAR NOT NULL, 
	question_id VARCHAR NOT NULL, 
	measured_at VARCHAR NOT NULL, 
	source VARCHAR NOT NULL, 
	analysis_version INTEGER NOT NULL, 
	floor FLOAT NOT NULL, 
	failure INTEGER, 
	threads INTEGER, 
	tokens INTEGER, 
	tokens_final INTEGER, 
	gmacs_baseline FLOAT, 
	gmacs FLOAT, 
	gmacs_method FLOAT, 
	baseline_ms FLOAT, 
	method_ms FLOAT, 
	device_ms FLOAT, 
	speedup FLOAT, 
	speedup_low FLOAT, 
	speedup_high FLOAT, 
	pairs INTEGER, 
	rounds INTEGER, 
	verdict VARCHAR, 
	flags VARCHAR NOT NULL, 
	CONSTRAINT pk_speedup_row PRIMARY KEY (comparison_id, environment, metric), 
	CONSTRAINT ck_speedup_row_source CHECK (source IN ('measured', 'imported', 'published')), 
	CONSTRAINT ck_speedup_row_verdict CHECK (verdict IN ('faster', 'slower', 'same', 'unclear')), 
	CONSTRAINT ck_speedup_row_baseline_ms CHECK (baseline_ms + 0 = baseline_ms AND baseline_ms < 1e308 AND baseline_ms > -1e308 AND baseline_ms > 0), 
	CONSTRAINT ck_speedup_row_device_ms CHECK (device_ms + 0 = device_ms AND device_ms < 1e308 AND device_ms > -1e308 AND device_ms > 0), 
	CONSTRAINT ck_speedup_row_floor CHECK (floor + 0 = floor AND floor < 1e308 AND floor > -1e308 AND floor >= 0), 
	CONSTRAINT ck_speedup_row_gmacs CHECK (gmacs + 0 = gmacs AND gmacs < 1e308 AND gmacs > -1e308 AND gmacs >= 0), 
	CONSTRAINT ck_speedup_row_gmacs_baseline CHECK (gmacs_baseline + 0 = gmacs_baseline AND gmacs_baseline < 1e308 AND gmacs_baseline > -1e308 AND gmacs_baseline >= 0), 
	CONSTRAINT ck_speedup_row_gmacs_method CHECK (gmacs_method + 0 = gmacs_method AND gmacs_method < 1e308 AND gmacs_method > -1e308 AND gmacs_method >= 0), 
	CONSTRAINT ck_speedup_row_method_ms CHECK (method_ms + 0 = method_ms AND method_ms < 1e308 AND method_ms > -1e308 AND method_ms > 0), 
	CONSTRAINT ck_speedup_row_pairs CHECK (pairs + 0 = pairs AND pairs < 1e308 AND pairs > -1e308 AND pairs >= 0), 
	CONSTRAINT ck_speedup_row_rounds CHECK (rounds + 0 = rounds AND rounds < 1e308 AND rounds > -1e308 AND rounds >= 0), 
	CONSTRAINT ck_speedup_row_speedup CHECK (speedup + 0 = speedup AND speedup < 1e308 AND speedup > -1e308 AND speedup > 0), 
	CONSTRAINT ck_speedup_row_speedup_high CHECK (speedup_high + 0 = speedup_high AND speedup_high < 1e308 AND speedup_high > -1e308 AND speedup_high > 0), 
	CONSTRAINT ck_speedup_row_speedup_low CHECK (speedup_low + 0 = speedup_low AND speedup_low < 1e308 AND speedup_low > -1e308 AND speedup_low > 0), 
	CONSTRAINT ck_speedup_row_threads CHECK (threads + 0 = threads AND threads < 1e308 AND threads > -1e308 AND threads >= 0), 
	CONSTRAINT ck_speedup_row_tokens CHECK (tokens + 0 = tokens AND tokens < 1e308 AND tokens > -1e308 AND tokens >= 0), 
	CONSTRAINT ck_speedup_row_tokens_final CHECK (tokens_final + 0 = tokens_final AND tokens_final < 1e308 AND tokens_final > -1e308 AND tokens_final >= 0), 
	CONSTRAINT fk_speedup_row_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id), 
	CONSTRAINT fk_speedup_row_environment FOREIGN KEY(environment) REFERENCES environment (environment_id), 
	CONSTRAINT fk_speedup_row_failure FOREIGN KEY(failure) REFERENCES failure (id)
);
INSERT INTO "speedup_row" VALUES('504525e3be872db0','3726d88f8db4b006','latency','0783abb7a018c837','2026-09-21T14:13:20.000Z','imported',2,0.01,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,9.99243271201555,1.25252898479829894991e+01,NULL,7.98178406418599606375e-01,0.79459497400884,8.04640434258636294551e-01,31,1,'slower','');
INSERT INTO "speedup_row" VALUES('5bae8cee2922af7f','3726d88f8db4b006','latency','9e4f6f298bc67be1','2026-09-21T14:13:20.000Z','imported',2,0.01,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,9.99243271201555,1.05633819569735756262e+01,NULL,9.46211599976431450009e-01,9.36017788618862867089e-01,9.52436239884604796124e-01,31,1,'slower','');
INSERT INTO "speedup_row" VALUES('b9e8bb028c503621','3726d88f8db4b006','latency','ca7cccb30b9363f1','2026-09-21T14:13:20.000Z','imported',2,0.01,NULL,2,16,17,0.16,1.06666666666666673513e-01,0.001,9.99243271201555,1.11195135766570789574e+01,NULL,8.9580484514143188246e-01,8.91437981241197885395e-01,0.905210267891207,31,1,'slower','');
INSERT INTO "speedup_row" VALUES('21fd833d12c39f54','3726d88f8db4b006','latency','7bc9f166576d8071','2026-09-21T14:13:20.000Z','imported',2,0.01,NULL,2,196,197,1.96,1.30666666666666664298e+00,0.001,9.97130248553511,6.65803135523320221977e+00,NULL,1.49617043807680061284e+00,1.48804128604131435942e+00,1.50731574884275021375e+00,31,1,'faster','');
INSERT INTO "speedup_row" VALUES('340694a37c90f489','3726d88f8db4b006','latency','8d1c45e173ffc4ce','2026-09-21T14:13:20.000Z','imported',2,0.01,NULL,2,196,197,1.96,1.30666666666666664298e+00,0.001,9.97130248553511,7.71969268511657613629e+00,NULL,1.2948809729372137145e+00,1.28523947065400712119e+00,1.30241338477863033418e+00,31,1,'faster','');
INSERT INTO "speedup_row" VALUES('cbd1c83d70d484a5','3726d88f8db4b006','latency','7d69d449c89aabd5','2026-09-21T14:13:20.000Z','imported',2,0.01,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'');
CREATE TABLE sweep (
	id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	revision INTEGER NOT NULL, 
	text VARCHAR NOT NULL, 
	question VARCHAR NOT NULL, 
	settings VARCHAR NOT NULL, 
	submitted_at FLOAT NOT NULL, 
	CONSTRAINT pk_sweep PRIMARY KEY (id), 
	CONSTRAINT ck_sweep_revision CHECK (revision + 0 = revision AND revision < 1e308 AND revision > -1e308 AND revision > 0), 
	CONSTRAINT uq_sweep_name_revision UNIQUE (name, revision)
);
INSERT INTO "sweep" VALUES(1,'old',1,'schema: 1
name: old
','How old?','{"limits":{},"retry":{}}',1795285505.31572);
CREATE TABLE sweep_comparison_row (
	sweep INTEGER NOT NULL, 
	comparison_id VARCHAR NOT NULL, 
	CONSTRAINT pk_sweep_comparison_row PRIMARY KEY (sweep, comparison_id), 
	CONSTRAINT fk_sweep_comparison_row_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id), 
	CONSTRAINT fk_sweep_comparison_row_sweep FOREIGN KEY(sweep) REFERENCES sweep (id)
);
INSERT INTO "sweep_comparison_row" VALUES(1,'21fd833d12c39f54');
INSERT INTO "sweep_comparison_row" VALUES(1,'340694a37c90f489');
INSERT INTO "sweep_comparison_row" VALUES(1,'504525e3be872db0');
INSERT INTO "sweep_comparison_row" VALUES(1,'5bae8cee2922af7f');
INSERT INTO "sweep_comparison_row" VALUES(1,'95b045203d0ff65c');
INSERT INTO "sweep_comparison_row" VALUES(1,'b9e8bb028c503621');
INSERT INTO "sweep_comparison_row" VALUES(1,'cbd1c83d70d484a5');
INSERT INTO "sweep_comparison_row" VALUES(1,'e2e1188b3ed7a0d2');
INSERT INTO "sweep_comparison_row" VALUES(1,'e974e033c6d3c300');
CREATE TABLE sweep_job (
	sweep INTEGER NOT NULL, 
	job INTEGER NOT NULL, 
	CONSTRAINT pk_sweep_job PRIMARY KEY (sweep, job), 
	CONSTRAINT fk_sweep_job_job FOREIGN KEY(job) REFERENCES job (id), 
	CONSTRAINT fk_sweep_job_sweep FOREIGN KEY(sweep) REFERENCES sweep (id)
);
INSERT INTO "sweep_job" VALUES(1,1);
INSERT INTO "sweep_job" VALUES(1,2);
INSERT INTO "sweep_job" VALUES(1,3);
CREATE INDEX ix_comparison_curve_id ON comparison (curve_id);
CREATE INDEX ix_comparison_question_id ON comparison (question_id);
CREATE INDEX ix_job_job_id ON job (job_id);
CREATE INDEX ix_job_state_id ON job (state, id);
CREATE INDEX ix_attempt_job ON attempt (job);
CREATE INDEX ix_attempt_job_id ON attempt (job_id);
CREATE INDEX ix_sweep_comparison_row_comparison_id ON sweep_comparison_row (comparison_id);
CREATE INDEX ix_sweep_job_job ON sweep_job (job);
CREATE INDEX ix_failure_attempt ON failure (attempt);
CREATE INDEX ix_pairing_attempt ON pairing (attempt);
CREATE INDEX ix_speedup_row_question_id_environment_metric_measured_at ON speedup_row (question_id, environment, metric, measured_at);
CREATE INDEX ix_comparison_method_model_image_size ON comparison (method, model, image_size);
CREATE INDEX ix_accuracy_row_question_id_environment_measured_at ON accuracy_row (question_id, environment, measured_at);
CREATE INDEX ix_break_even_row_curve_id_environment ON break_even_row (curve_id, environment);
CREATE VIEW speedup AS 
SELECT
  r.comparison_id, r.question_id, c.arm_id, c.kind, r.metric, r.source, r.measured_at, r.environment, e.device, e.device_name,
  c.model, c.weights, c.method, c.params, c.baseline, c.dtype, c.attention, c.runtime, r.threads, c.batch_size, c.image_size,
  r.tokens, r.tokens_final, r.gmacs_baseline, r.gmacs, r.gmacs_method, r.baseline_ms, r.method_ms, r.device_ms,
  r.speedup, r.speedup_low, r.speedup_high, r.pairs, r.rounds, r.verdict, r.floor, r.flags, c.seed, c.curve_id
FROM speedup_row AS r
JOIN comparison AS c ON c.comparison_id = r.comparison_id
JOIN environment AS e ON e.environment_id = r.environment
WHERE r.speedup IS NOT NULL AND NOT EXISTS (SELECT 1 FROM speedup_row AS newer WHERE newer.metric = r.metric AND newer.question_id = r.question_id AND newer.environment = r.environment
      AND (newer.measured_at > r.measured_at
           OR (newer.measured_at = r.measured_at AND newer.comparison_id > r.comparison_id)));
CREATE VIEW sweep_comparison AS 
SELECT s.name AS sweep, l.comparison_id
FROM sweep_comparison_row AS l
JOIN sweep AS s ON s.id = l.sweep
WHERE 
  NOT EXISTS (SELECT 1 FROM sweep AS newer WHERE newer.name = s.name AND newer.revision > s.revision);
CREATE VIEW break_even AS 
SELECT
  s.name AS sweep, b.environment, e.device_name, c.model, c.method, c.params, c.baseline, c.dtype, c.attention, c.runtime,
  c.batch_size, b.axis, b.verdict, b.x, b.x_low, b.x_high, b.points,
  b.direction, b.grid_limited, b.why, e.device, c.weights, b.threads, c.seed, b.floor, b.curve_id, b.varies
FROM break_even_row AS b
JOIN sweep AS s ON s.id = b.sweep
JOIN comparison AS c ON c.comparison_id = b.comparison_id
JOIN environment AS e ON e.environment_id = b.environment
WHERE 
  NOT EXISTS (SELECT 1 FROM sweep AS newer WHERE newer.name = s.name AND newer.revision > s.revision);
CREATE VIEW failures AS 
SELECT
  r.comparison_id, r.question_id, r.environment, e.device, e.device_name, c.model, c.weights, c.method, c.params, c.baseline,
  c.dtype, c.attention, c.runtime, c.threads, c.batch_size, c.image_size, f.reason, f.message, r.measured_at AS at, f.attempt,
  c.kind, c.data, c.corruption, c.severity
FROM (
  SELECT r.comparison_id, r.question_id, r.environment, r.measured_at, r.failure FROM speedup_row AS r WHERE NOT EXISTS (SELECT 1 FROM speedup_row AS newer WHERE newer.metric = r.metric AND newer.question_id = r.question_id AND newer.environment = r.environment
      AND (newer.measured_at > r.measured_at
           OR (newer.measured_at = r.measured_at AND newer.comparison_id > r.comparison_id)))
  UNION ALL
  SELECT r.comparison_id, r.question_id, r.environment, r.measured_at, r.failure FROM accuracy_row AS r WHERE NOT EXISTS (SELECT 1 FROM accuracy_row AS newer WHERE newer.question_id = r.question_id AND newer.environment = r.environment
      AND (newer.measured_at > r.measured_at
           OR (newer.measured_at = r.measured_at AND newer.comparison_id > r.comparison_id)))
) AS r
JOIN failure AS f ON f.id = r.failure
JOIN comparison AS c ON c.comparison_id = r.comparison_id
JOIN environment AS e ON e.environment_id = r.environment;
CREATE VIEW metric AS 
SELECT m.attempt, m.arm, m.metric, m.value, m.unit, m.low, m.high, m.n, a.arm_id, t.environment, t.flags
FROM metric_row AS m
JOIN attempt AS t ON t.id = m.attempt
LEFT JOIN measured_arm AS a ON a.attempt = m.attempt AND a.arm = m.arm;
CREATE VIEW accuracy AS 
SELECT
  r.comparison_id, r.question_id, c.arm_id, c.kind, r.source, r.measured_at, r.environment, e.device, e.device_name,
  c.model, c.weights, c.method, c.params, c.baseline, c.dtype, c.attention, c.data, c.corruption, c.severity, c.image_size,
  r.images, r.tokens, r.tokens_final, r.gmacs_baseline, r.gmacs, r.gmacs_method,
  r.top1_baseline, r.top1, r.top1_low, r.top1_high, r.top1_drop, r.top1_drop_low, r.top1_drop_high, r.mcnemar_p, r.verdict,
  r.top5_baseline, r.top5, r.kl, r.kl_low, r.kl_high,
  r.margin_change, r.margin_change_low, r.margin_change_high, r.margin_change_tail, r.flags,
  r.lost, r.gained, r.unreadable, r.floor, c.seed
FROM accuracy_row AS r
JOIN comparison AS c ON c.comparison_id = r.comparison_id
JOIN environment AS e ON e.environment_id = r.environment
WHERE r.images IS NOT NULL AND NOT EXISTS (SELECT 1 FROM accuracy_row AS newer WHERE newer.question_id = r.question_id AND newer.environment = r.environment
      AND (newer.measured_at > r.measured_at
           OR (newer.measured_at = r.measured_at AND newer.comparison_id > r.comparison_id)));
COMMIT;
