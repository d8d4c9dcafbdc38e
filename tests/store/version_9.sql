BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0009');
CREATE TABLE arm_result (
	route VARCHAR, 
	arm_id VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	device VARCHAR NOT NULL, 
	model VARCHAR NOT NULL, 
	weights VARCHAR NOT NULL, 
	image_size INTEGER, 
	batch_size INTEGER NOT NULL, 
	dtype VARCHAR NOT NULL, 
	attention VARCHAR NOT NULL, 
	runtime VARCHAR NOT NULL, 
	seed INTEGER NOT NULL, 
	method VARCHAR NOT NULL, 
	params VARCHAR NOT NULL, 
	data VARCHAR, 
	corruption VARCHAR, 
	severity INTEGER, 
	prompt_tokens INTEGER, 
	new_tokens INTEGER, 
	kv_cache VARCHAR, 
	decoding VARCHAR, 
	condition_id VARCHAR, 
	"exclusive" VARCHAR, 
	spare_cores INTEGER, 
	wait_policy VARCHAR, 
	pinning VARCHAR, 
	attempt INTEGER NOT NULL, 
	arm INTEGER NOT NULL, 
	arm_condition_id VARCHAR NOT NULL, 
	gmacs FLOAT NOT NULL, 
	gmacs_overhead FLOAT NOT NULL, 
	parameters BIGINT NOT NULL, 
	trainable_parameters BIGINT NOT NULL, 
	batch INTEGER NOT NULL, 
	tokens INTEGER NOT NULL, 
	tokens_final INTEGER NOT NULL, 
	threads INTEGER NOT NULL, 
	flags VARCHAR NOT NULL, 
	CONSTRAINT pk_arm_result PRIMARY KEY (attempt, arm), 
	CONSTRAINT ck_arm_result_image_size CHECK (image_size + 0 = image_size AND image_size < 1e308 AND image_size > -1e308 AND image_size > 0), 
	CONSTRAINT ck_arm_result_batch_size CHECK (batch_size + 0 = batch_size AND batch_size < 1e308 AND batch_size > -1e308 AND batch_size > 0), 
	CONSTRAINT ck_arm_result_prompt_tokens CHECK (prompt_tokens + 0 = prompt_tokens AND prompt_tokens < 1e308 AND prompt_tokens > -1e308 AND prompt_tokens > 0), 
	CONSTRAINT ck_arm_result_new_tokens CHECK (new_tokens + 0 = new_tokens AND new_tokens < 1e308 AND new_tokens > -1e308 AND new_tokens > 0), 
	CONSTRAINT ck_arm_result_batch CHECK (batch + 0 = batch AND batch < 1e308 AND batch > -1e308 AND batch > 0), 
	CONSTRAINT ck_arm_result_threads CHECK (threads + 0 = threads AND threads < 1e308 AND threads > -1e308 AND threads > 0), 
	CONSTRAINT ck_arm_result_gmacs CHECK (gmacs + 0 = gmacs AND gmacs < 1e308 AND gmacs > -1e308 AND gmacs >= 0), 
	CONSTRAINT ck_arm_result_gmacs_overhead CHECK (gmacs_overhead + 0 = gmacs_overhead AND gmacs_overhead < 1e308 AND gmacs_overhead > -1e308 AND gmacs_overhead >= 0), 
	CONSTRAINT ck_arm_result_tokens CHECK (tokens + 0 = tokens AND tokens < 1e308 AND tokens > -1e308 AND tokens >= 0), 
	CONSTRAINT ck_arm_result_tokens_final CHECK (tokens_final + 0 = tokens_final AND tokens_final < 1e308 AND tokens_final > -1e308 AND tokens_final >= 0), 
	CONSTRAINT fk_arm_result_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
INSERT INTO "arm_result" VALUES(NULL,'6cb99fb9c27e3323','profile','cpu','deit_tiny_patch16_224','random',224,1,'float32','sdpa','eager',0,'dense','{}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'f7df8ceec5ef22eb',NULL,NULL,NULL,NULL,1,0,'e648821c6ddd9f33',1.0,0.0,1,1,1,196,99,2,'');
INSERT INTO "arm_result" VALUES(NULL,'3c5967213fafc688','profile','cpu','deit_tiny_patch16_224','random',224,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'f7df8ceec5ef22eb',NULL,NULL,NULL,NULL,1,1,'3c17e49c08d7dd30',1.0,0.0,1,1,1,196,99,2,'');
CREATE TABLE attempt (
	id INTEGER NOT NULL, 
	digest VARCHAR NOT NULL, 
	job INTEGER, 
	job_id VARCHAR NOT NULL, 
	n INTEGER NOT NULL, 
	round INTEGER NOT NULL, 
	environment VARCHAR NOT NULL, 
	host VARCHAR NOT NULL, 
	process VARCHAR, 
	calibration_id VARCHAR, 
	started_at FLOAT NOT NULL, 
	ended_at FLOAT NOT NULL, 
	project_commit VARCHAR, 
	source VARCHAR NOT NULL, 
	flags VARCHAR NOT NULL, 
	protocol VARCHAR NOT NULL, 
	system_metrics VARCHAR NOT NULL, 
	payload VARCHAR NOT NULL, 
	CONSTRAINT pk_attempt PRIMARY KEY (id), 
	CONSTRAINT ck_attempt_source CHECK (source IN ('measured', 'imported', 'published')), 
	CONSTRAINT ck_attempt_started_at CHECK (started_at + 0 = started_at AND started_at < 1e308 AND started_at > -1e308 AND started_at > 0), 
	CONSTRAINT ck_attempt_ended_at CHECK (ended_at + 0 = ended_at AND ended_at < 1e308 AND ended_at > -1e308 AND ended_at >= started_at), 
	CONSTRAINT ck_attempt_n CHECK (n + 0 = n AND n < 1e308 AND n > -1e308 AND n > 0), 
	CONSTRAINT uq_attempt_digest UNIQUE (digest), 
	CONSTRAINT fk_attempt_job FOREIGN KEY(job) REFERENCES job (id), 
	CONSTRAINT fk_attempt_environment FOREIGN KEY(environment) REFERENCES environment (environment_id), 
	CONSTRAINT fk_attempt_calibration_id FOREIGN KEY(calibration_id) REFERENCES calibration (calibration_id)
);
INSERT INTO "attempt" VALUES(1,'c5221cd02a4d7d9aae1dbf57f0a2e94935f0dbd66b2b0afc4f579400412a0f00',NULL,'cd08b415ad59d829',1,0,'bc186409938b9f2d','here',NULL,NULL,1789999990.0,1790000000.0,NULL,'imported','','{"budget_s":10.0,"compile_timeout_s":900.0,"half_width":0.015,"pairs_max":300,"pairs_min":30,"rounds":1,"timeout_s":300.0}','{}','{"schema_version":1,"job":{"kind":"profile","condition":{"model":"deit_tiny_patch16_224","weights":"random","image_size":224,"batch_size":1,"device":"cpu","threads":null,"dtype":"float32","attention":"sdpa","runtime":"eager","seed":0},"arms":[{"stack":[],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0},{"stack":[{"method":"topk","params":{"keep_rate":0.5},"version":1}],"overrides":{"dtype":null,"attention":null,"runtime":null,"image_size":null},"replicate":0}],"pairs":[[0,1]],"protocol":{"pairs_min":30,"pairs_max":300,"half_width":0.015,"budget_s":10.0,"timeout_s":300.0,"rounds":1},"content_hashes":{},"round":0},"environment":{"device":"cpu","device_name":"Imaginary CPU","facts":{"cores":"2"}},"host":"here","started_at":1789999990.0,"ended_at":1790000000.0,"arms":[{"arm":0,"gmacs":1.0,"gmacs_overhead":0.0,"parameters":1,"trainable_parameters":1,"batch":1,"tokens":196,"tokens_final":99,"trace":[],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[],"flags":[]},{"arm":1,"gmacs":1.0,"gmacs_overhead":0.0,"parameters":1,"trainable_parameters":1,"batch":1,"tokens":196,"tokens_final":99,"trace":[],"threads":2,"warmup_s":null,"warmup_forwards":null,"first_call_s":null,"solved":{},"metrics":[],"flags":[]}],"failures":[],"peaks":[{"gflops":100.0,"gb_per_s":10.0,"dtype":"float32","threads":2}],"system_metrics":{},"flags":[],"commit":null}');
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
	metric VARCHAR NOT NULL, 
	varied_parameter VARCHAR, 
	host VARCHAR NOT NULL, 
	points_missing INTEGER NOT NULL, 
	fitted BOOLEAN, 
	worst_loss FLOAT, 
	largest_gain FLOAT, 
	pairs_factor FLOAT, 
	more_seconds FLOAT, 
	point_alpha FLOAT, 
	CONSTRAINT pk_break_even_row PRIMARY KEY (sweep, curve_id, environment, axis, crossing, metric, host), 
	CONSTRAINT ck_break_even_row_axis CHECK (axis IN ('tokens', 'gmacs', 'gmacs_saved', 'image_size', 'batch_size', 'threads', 'parameter')), 
	CONSTRAINT ck_break_even_row_verdict CHECK (verdict IN ('crossing', 'pays_from', 'pays_up_to', 'pays_at_both_ends', 'always', 'never', 'no_effect', 'unclear')), 
	CONSTRAINT ck_break_even_row_direction CHECK (direction IN ('gains', 'loses')), 
	CONSTRAINT ck_break_even_row_x CHECK (x + 0 = x AND x < 1e308 AND x > -1e308), 
	CONSTRAINT ck_break_even_row_x_low CHECK (x_low + 0 = x_low AND x_low < 1e308 AND x_low > -1e308), 
	CONSTRAINT ck_break_even_row_x_high CHECK (x_high + 0 = x_high AND x_high < 1e308 AND x_high > -1e308), 
	CONSTRAINT ck_break_even_row_worst_loss CHECK (worst_loss + 0 = worst_loss AND worst_loss < 1e308 AND worst_loss > -1e308), 
	CONSTRAINT ck_break_even_row_largest_gain CHECK (largest_gain + 0 = largest_gain AND largest_gain < 1e308 AND largest_gain > -1e308), 
	CONSTRAINT ck_break_even_row_pairs_factor CHECK (pairs_factor + 0 = pairs_factor AND pairs_factor < 1e308 AND pairs_factor > -1e308), 
	CONSTRAINT ck_break_even_row_more_seconds CHECK (more_seconds + 0 = more_seconds AND more_seconds < 1e308 AND more_seconds > -1e308), 
	CONSTRAINT ck_break_even_row_points CHECK (points + 0 = points AND points < 1e308 AND points > -1e308 AND points >= 0), 
	CONSTRAINT ck_break_even_row_points_missing CHECK (points_missing + 0 = points_missing AND points_missing < 1e308 AND points_missing > -1e308 AND points_missing >= 0), 
	CONSTRAINT fk_break_even_row_sweep FOREIGN KEY(sweep) REFERENCES sweep (id), 
	CONSTRAINT fk_break_even_row_environment FOREIGN KEY(environment) REFERENCES environment (environment_id), 
	CONSTRAINT fk_break_even_row_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id)
);
CREATE TABLE calibration (
	calibration_id VARCHAR NOT NULL, 
	environment VARCHAR NOT NULL, 
	size_class VARCHAR NOT NULL, 
	created_at FLOAT NOT NULL, 
	process_sd FLOAT NOT NULL, 
	tau FLOAT NOT NULL, 
	tau_low FLOAT NOT NULL, 
	tau_high FLOAT NOT NULL, 
	freedom FLOAT NOT NULL, 
	processes INTEGER NOT NULL, 
	contrasts INTEGER NOT NULL, 
	CONSTRAINT pk_calibration PRIMARY KEY (calibration_id), 
	CONSTRAINT ck_calibration_process_sd CHECK (process_sd + 0 = process_sd AND process_sd < 1e308 AND process_sd > -1e308 AND process_sd >= 0), 
	CONSTRAINT ck_calibration_tau CHECK (tau + 0 = tau AND tau < 1e308 AND tau > -1e308 AND tau >= 0), 
	CONSTRAINT ck_calibration_tau_low CHECK (tau_low + 0 = tau_low AND tau_low < 1e308 AND tau_low > -1e308 AND tau_low >= 0), 
	CONSTRAINT ck_calibration_tau_high CHECK (tau_high + 0 = tau_high AND tau_high < 1e308 AND tau_high > -1e308 AND tau_high >= 0), 
	CONSTRAINT ck_calibration_created_at CHECK (created_at + 0 = created_at AND created_at < 1e308 AND created_at > -1e308 AND created_at >= 0), 
	CONSTRAINT ck_calibration_freedom CHECK (freedom + 0 = freedom AND freedom < 1e308 AND freedom > -1e308 AND freedom > 0), 
	CONSTRAINT ck_calibration_processes CHECK (processes + 0 = processes AND processes < 1e308 AND processes > -1e308 AND processes > 0), 
	CONSTRAINT ck_calibration_contrasts CHECK (contrasts + 0 = contrasts AND contrasts < 1e308 AND contrasts > -1e308 AND contrasts > 0), 
	CONSTRAINT fk_calibration_environment FOREIGN KEY(environment) REFERENCES environment (environment_id)
);
CREATE TABLE comparison (
	arm_id VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	device VARCHAR NOT NULL, 
	model VARCHAR NOT NULL, 
	weights VARCHAR NOT NULL, 
	image_size INTEGER, 
	batch_size INTEGER NOT NULL, 
	dtype VARCHAR NOT NULL, 
	attention VARCHAR NOT NULL, 
	runtime VARCHAR NOT NULL, 
	seed INTEGER NOT NULL, 
	method VARCHAR NOT NULL, 
	params VARCHAR NOT NULL, 
	data VARCHAR, 
	corruption VARCHAR, 
	severity INTEGER, 
	prompt_tokens INTEGER, 
	new_tokens INTEGER, 
	kv_cache VARCHAR, 
	decoding VARCHAR, 
	condition_id VARCHAR, 
	"exclusive" VARCHAR, 
	spare_cores INTEGER, 
	wait_policy VARCHAR, 
	pinning VARCHAR, 
	comparison_id VARCHAR NOT NULL, 
	question_id VARCHAR NOT NULL, 
	curve_id VARCHAR NOT NULL, 
	threads INTEGER, 
	baseline VARCHAR NOT NULL, 
	baseline_id VARCHAR, 
	quality_arm_id VARCHAR, 
	quality_pair_id VARCHAR, 
	payload VARCHAR NOT NULL, 
	content_hashes VARCHAR NOT NULL, 
	CONSTRAINT pk_comparison PRIMARY KEY (comparison_id), 
	CONSTRAINT ck_comparison_image_size CHECK (image_size + 0 = image_size AND image_size < 1e308 AND image_size > -1e308 AND image_size > 0), 
	CONSTRAINT ck_comparison_batch_size CHECK (batch_size + 0 = batch_size AND batch_size < 1e308 AND batch_size > -1e308 AND batch_size > 0), 
	CONSTRAINT ck_comparison_prompt_tokens CHECK (prompt_tokens + 0 = prompt_tokens AND prompt_tokens < 1e308 AND prompt_tokens > -1e308 AND prompt_tokens > 0), 
	CONSTRAINT ck_comparison_new_tokens CHECK (new_tokens + 0 = new_tokens AND new_tokens < 1e308 AND new_tokens > -1e308 AND new_tokens > 0)
);
INSERT INTO "comparison" VALUES('3c5967213fafc688','profile','cpu','deit_tiny_patch16_224','random',224,1,'float32','sdpa','eager',0,'topk','{"keep_rate":0.5}',NULL,NULL,NULL,NULL,NULL,NULL,NULL,'f7df8ceec5ef22eb',NULL,NULL,NULL,NULL,'6d6844b2d84f635a','69962e32e423b6d1','635c81e5057522d0',NULL,'dense','6cb99fb9c27e3323','549d1f8da28f3b3b','d77e0e58b0f9fdd8','{"arm":{"overrides":{},"replicate":0,"stack":[{"method":"topk","params":{"keep_rate":0.5},"version":1}]},"baseline":{"overrides":{},"replicate":0,"stack":[]},"condition":{"attention":"sdpa","batch_size":1,"device":"cpu","dtype":"float32","image_size":224,"model":"deit_tiny_patch16_224","runtime":"eager","seed":0,"weights":"random"},"kind":"profile"}','{}');
CREATE TABLE comparison_attempt (
	comparison_id VARCHAR NOT NULL, 
	attempt INTEGER NOT NULL, 
	baseline INTEGER NOT NULL, 
	arm INTEGER NOT NULL, 
	failure INTEGER, 
	CONSTRAINT pk_comparison_attempt PRIMARY KEY (comparison_id, attempt), 
	CONSTRAINT fk_comparison_attempt_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id), 
	CONSTRAINT fk_comparison_attempt_attempt FOREIGN KEY(attempt) REFERENCES attempt (id), 
	CONSTRAINT fk_comparison_attempt_failure FOREIGN KEY(failure) REFERENCES failure (id)
);
INSERT INTO "comparison_attempt" VALUES('6d6844b2d84f635a',1,0,1,NULL);
CREATE TABLE cost_model_row (
	sweep INTEGER NOT NULL, 
	curve_id VARCHAR NOT NULL, 
	environment VARCHAR NOT NULL, 
	host VARCHAR NOT NULL, 
	metric VARCHAR NOT NULL, 
	comparison_id VARCHAR NOT NULL, 
	threads INTEGER, 
	points INTEGER NOT NULL, 
	work_unit VARCHAR NOT NULL, 
	verdict VARCHAR NOT NULL, 
	misfit_p FLOAT, 
	alpha_baseline FLOAT, 
	alpha_baseline_low FLOAT, 
	alpha_baseline_high FLOAT, 
	beta_baseline FLOAT, 
	beta_baseline_low FLOAT, 
	beta_baseline_high FLOAT, 
	alpha FLOAT, 
	alpha_low FLOAT, 
	alpha_high FLOAT, 
	beta FLOAT, 
	beta_low FLOAT, 
	beta_high FLOAT, 
	predicted_x FLOAT, 
	predicted_x_low FLOAT, 
	predicted_x_high FLOAT, 
	measured_x FLOAT, 
	measured_x_low FLOAT, 
	measured_x_high FLOAT, 
	analysis_version INTEGER NOT NULL, 
	CONSTRAINT pk_cost_model_row PRIMARY KEY (sweep, curve_id, environment, host, metric), 
	CONSTRAINT ck_cost_model_row_work_unit CHECK (work_unit IN ('GMAC', 'token')), 
	CONSTRAINT ck_cost_model_row_verdict CHECK (verdict IN ('fits', 'misfit', 'undetermined')), 
	CONSTRAINT ck_cost_model_row_alpha_baseline CHECK (alpha_baseline + 0 = alpha_baseline AND alpha_baseline < 1e308 AND alpha_baseline > -1e308 AND alpha_baseline >= 0), 
	CONSTRAINT ck_cost_model_row_alpha_baseline_low CHECK (alpha_baseline_low + 0 = alpha_baseline_low AND alpha_baseline_low < 1e308 AND alpha_baseline_low > -1e308 AND alpha_baseline_low >= 0), 
	CONSTRAINT ck_cost_model_row_alpha_baseline_high CHECK (alpha_baseline_high + 0 = alpha_baseline_high AND alpha_baseline_high < 1e308 AND alpha_baseline_high > -1e308 AND alpha_baseline_high >= 0), 
	CONSTRAINT ck_cost_model_row_beta_baseline CHECK (beta_baseline + 0 = beta_baseline AND beta_baseline < 1e308 AND beta_baseline > -1e308 AND beta_baseline >= 0), 
	CONSTRAINT ck_cost_model_row_beta_baseline_low CHECK (beta_baseline_low + 0 = beta_baseline_low AND beta_baseline_low < 1e308 AND beta_baseline_low > -1e308 AND beta_baseline_low >= 0), 
	CONSTRAINT ck_cost_model_row_beta_baseline_high CHECK (beta_baseline_high + 0 = beta_baseline_high AND beta_baseline_high < 1e308 AND beta_baseline_high > -1e308 AND beta_baseline_high >= 0), 
	CONSTRAINT ck_cost_model_row_alpha CHECK (alpha + 0 = alpha AND alpha < 1e308 AND alpha > -1e308 AND alpha >= 0), 
	CONSTRAINT ck_cost_model_row_alpha_low CHECK (alpha_low + 0 = alpha_low AND alpha_low < 1e308 AND alpha_low > -1e308 AND alpha_low >= 0), 
	CONSTRAINT ck_cost_model_row_alpha_high CHECK (alpha_high + 0 = alpha_high AND alpha_high < 1e308 AND alpha_high > -1e308 AND alpha_high >= 0), 
	CONSTRAINT ck_cost_model_row_beta CHECK (beta + 0 = beta AND beta < 1e308 AND beta > -1e308 AND beta >= 0), 
	CONSTRAINT ck_cost_model_row_beta_low CHECK (beta_low + 0 = beta_low AND beta_low < 1e308 AND beta_low > -1e308 AND beta_low >= 0), 
	CONSTRAINT ck_cost_model_row_beta_high CHECK (beta_high + 0 = beta_high AND beta_high < 1e308 AND beta_high > -1e308 AND beta_high >= 0), 
	CONSTRAINT ck_cost_model_row_predicted_x CHECK (predicted_x + 0 = predicted_x AND predicted_x < 1e308 AND predicted_x > -1e308), 
	CONSTRAINT ck_cost_model_row_predicted_x_low CHECK (predicted_x_low + 0 = predicted_x_low AND predicted_x_low < 1e308 AND predicted_x_low > -1e308), 
	CONSTRAINT ck_cost_model_row_predicted_x_high CHECK (predicted_x_high + 0 = predicted_x_high AND predicted_x_high < 1e308 AND predicted_x_high > -1e308), 
	CONSTRAINT ck_cost_model_row_measured_x CHECK (measured_x + 0 = measured_x AND measured_x < 1e308 AND measured_x > -1e308), 
	CONSTRAINT ck_cost_model_row_measured_x_low CHECK (measured_x_low + 0 = measured_x_low AND measured_x_low < 1e308 AND measured_x_low > -1e308), 
	CONSTRAINT ck_cost_model_row_measured_x_high CHECK (measured_x_high + 0 = measured_x_high AND measured_x_high < 1e308 AND measured_x_high > -1e308), 
	CONSTRAINT ck_cost_model_row_misfit_p CHECK (misfit_p + 0 = misfit_p AND misfit_p < 1e308 AND misfit_p > -1e308 AND misfit_p >= 0), 
	CONSTRAINT ck_cost_model_row_points CHECK (points + 0 = points AND points < 1e308 AND points > -1e308 AND points >= 0), 
	CONSTRAINT fk_cost_model_row_sweep FOREIGN KEY(sweep) REFERENCES sweep (id), 
	CONSTRAINT fk_cost_model_row_environment FOREIGN KEY(environment) REFERENCES environment (environment_id), 
	CONSTRAINT fk_cost_model_row_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id)
);
CREATE TABLE effect_row (
	route VARCHAR, 
	comparison_id VARCHAR NOT NULL, 
	environment VARCHAR NOT NULL, 
	host VARCHAR NOT NULL, 
	metric VARCHAR NOT NULL, 
	question_id VARCHAR NOT NULL, 
	measured_at VARCHAR NOT NULL, 
	source VARCHAR NOT NULL, 
	analysis_version INTEGER NOT NULL, 
	unit VARCHAR NOT NULL, 
	compared VARCHAR, 
	floor FLOAT, 
	failure INTEGER, 
	threads INTEGER, 
	tokens INTEGER, 
	tokens_final INTEGER, 
	gmacs_baseline FLOAT, 
	gmacs FLOAT, 
	gmacs_overhead FLOAT, 
	baseline_value FLOAT, 
	arm_value FLOAT, 
	arm_low FLOAT, 
	arm_high FLOAT, 
	device_value FLOAT, 
	effect FLOAT, 
	effect_low FLOAT, 
	effect_high FLOAT, 
	effect_se FLOAT, 
	effect_freedom FLOAT, 
	process_sd FLOAT, 
	calibration_id VARCHAR, 
	process_loads VARCHAR, 
	n INTEGER, 
	rounds INTEGER, 
	seconds FLOAT, 
	verdict VARCHAR, 
	flags VARCHAR NOT NULL, 
	CONSTRAINT pk_effect_row PRIMARY KEY (comparison_id, environment, host, metric), 
	CONSTRAINT ck_effect_row_source CHECK (source IN ('measured', 'imported', 'published')), 
	CONSTRAINT ck_effect_row_compared CHECK (compared IN ('ratio', 'amount', 'difference')), 
	CONSTRAINT ck_effect_row_verdict CHECK (verdict IN ('faster', 'slower', 'insufficient', 'quarantined', 'better', 'worse', 'same', 'unclear')), 
	CONSTRAINT ck_effect_row_tokens CHECK (tokens + 0 = tokens AND tokens < 1e308 AND tokens > -1e308 AND tokens >= 0), 
	CONSTRAINT ck_effect_row_tokens_final CHECK (tokens_final + 0 = tokens_final AND tokens_final < 1e308 AND tokens_final > -1e308 AND tokens_final >= 0), 
	CONSTRAINT ck_effect_row_gmacs_baseline CHECK (gmacs_baseline + 0 = gmacs_baseline AND gmacs_baseline < 1e308 AND gmacs_baseline > -1e308 AND gmacs_baseline >= 0), 
	CONSTRAINT ck_effect_row_gmacs CHECK (gmacs + 0 = gmacs AND gmacs < 1e308 AND gmacs > -1e308 AND gmacs >= 0), 
	CONSTRAINT ck_effect_row_gmacs_overhead CHECK (gmacs_overhead + 0 = gmacs_overhead AND gmacs_overhead < 1e308 AND gmacs_overhead > -1e308 AND gmacs_overhead >= 0), 
	CONSTRAINT ck_effect_row_floor CHECK (floor + 0 = floor AND floor < 1e308 AND floor > -1e308 AND floor >= 0), 
	CONSTRAINT ck_effect_row_n CHECK (n + 0 = n AND n < 1e308 AND n > -1e308 AND n >= 0), 
	CONSTRAINT ck_effect_row_rounds CHECK (rounds + 0 = rounds AND rounds < 1e308 AND rounds > -1e308 AND rounds >= 0), 
	CONSTRAINT ck_effect_row_threads CHECK (threads + 0 = threads AND threads < 1e308 AND threads > -1e308 AND threads >= 0), 
	CONSTRAINT ck_effect_row_baseline_value CHECK (baseline_value + 0 = baseline_value AND baseline_value < 1e308 AND baseline_value > -1e308), 
	CONSTRAINT ck_effect_row_arm_value CHECK (arm_value + 0 = arm_value AND arm_value < 1e308 AND arm_value > -1e308), 
	CONSTRAINT ck_effect_row_arm_low CHECK (arm_low + 0 = arm_low AND arm_low < 1e308 AND arm_low > -1e308), 
	CONSTRAINT ck_effect_row_arm_high CHECK (arm_high + 0 = arm_high AND arm_high < 1e308 AND arm_high > -1e308), 
	CONSTRAINT ck_effect_row_device_value CHECK (device_value + 0 = device_value AND device_value < 1e308 AND device_value > -1e308), 
	CONSTRAINT ck_effect_row_effect CHECK (effect + 0 = effect AND effect < 1e308 AND effect > -1e308), 
	CONSTRAINT ck_effect_row_effect_low CHECK (effect_low + 0 = effect_low AND effect_low < 1e308 AND effect_low > -1e308), 
	CONSTRAINT ck_effect_row_effect_high CHECK (effect_high + 0 = effect_high AND effect_high < 1e308 AND effect_high > -1e308), 
	CONSTRAINT ck_effect_row_ratio CHECK (compared <> 'ratio' OR (effect > 0 AND baseline_value > 0 AND arm_value > 0)), 
	CONSTRAINT fk_effect_row_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id), 
	CONSTRAINT fk_effect_row_environment FOREIGN KEY(environment) REFERENCES environment (environment_id), 
	CONSTRAINT fk_effect_row_failure FOREIGN KEY(failure) REFERENCES failure (id), 
	CONSTRAINT fk_effect_row_calibration_id FOREIGN KEY(calibration_id) REFERENCES calibration (calibration_id)
);
INSERT INTO "effect_row" VALUES(NULL,'6d6844b2d84f635a','bc186409938b9f2d','here','forward_wall','69962e32e423b6d1','2026-09-21T14:13:20.000Z','imported',1,'ms',NULL,NULL,NULL,2,196,99,1.0,1.0,0.0,25.0,18.0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,10,1,10.0,NULL,'');
CREATE TABLE environment (
	environment_id VARCHAR NOT NULL, 
	device VARCHAR NOT NULL, 
	device_name VARCHAR NOT NULL, 
	facts VARCHAR NOT NULL, 
	CONSTRAINT pk_environment PRIMARY KEY (environment_id)
);
INSERT INTO "environment" VALUES('bc186409938b9f2d','cpu','Imaginary CPU','{"cores":"2"}');
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
CREATE TABLE image_predictions (
	attempt INTEGER NOT NULL, 
	listing VARCHAR NOT NULL, 
	payload BLOB NOT NULL, 
	images INTEGER NOT NULL, 
	unreadable INTEGER NOT NULL, 
	classes INTEGER NOT NULL, 
	CONSTRAINT pk_image_predictions PRIMARY KEY (attempt), 
	CONSTRAINT ck_image_predictions_images CHECK (images + 0 = images AND images < 1e308 AND images > -1e308 AND images > 0), 
	CONSTRAINT ck_image_predictions_unreadable CHECK (unreadable + 0 = unreadable AND unreadable < 1e308 AND unreadable > -1e308 AND unreadable >= 0), 
	CONSTRAINT fk_image_predictions_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
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
	payload VARCHAR NOT NULL, 
	curve_group VARCHAR NOT NULL, 
	resources VARCHAR NOT NULL, 
	pinned_host VARCHAR, 
	pinned_environment VARCHAR, 
	pinned_by VARCHAR, 
	"exclusive" VARCHAR, 
	CONSTRAINT pk_job PRIMARY KEY (id), 
	CONSTRAINT ck_job_state CHECK (state IN ('waiting', 'running', 'done', 'failed', 'cancelled', 'split')), 
	CONSTRAINT ck_job_attempts CHECK (attempts + 0 = attempts AND attempts < 1e308 AND attempts > -1e308 AND attempts >= 0), 
	CONSTRAINT fk_job_parent FOREIGN KEY(parent) REFERENCES job (id)
);
CREATE TABLE kernel_row (
	profile_id VARCHAR NOT NULL, 
	place INTEGER NOT NULL, 
	attempt INTEGER, 
	name VARCHAR NOT NULL, 
	activity VARCHAR NOT NULL, 
	count FLOAT NOT NULL, 
	seconds FLOAT NOT NULL, 
	gmacs FLOAT, 
	bytes_moved FLOAT, 
	sm_throughput FLOAT, 
	memory_throughput FLOAT, 
	achieved_occupancy FLOAT, 
	l1_hit_rate FLOAT, 
	l2_hit_rate FLOAT, 
	CONSTRAINT pk_kernel_row PRIMARY KEY (profile_id, place), 
	CONSTRAINT ck_kernel_row_activity CHECK (activity IN ('kernel', 'memcpy', 'memset', 'operator')), 
	CONSTRAINT ck_kernel_row_place CHECK (place + 0 = place AND place < 1e308 AND place > -1e308 AND place >= 0), 
	CONSTRAINT ck_kernel_row_count CHECK (count + 0 = count AND count < 1e308 AND count > -1e308 AND count >= 0), 
	CONSTRAINT ck_kernel_row_seconds CHECK (seconds + 0 = seconds AND seconds < 1e308 AND seconds > -1e308 AND seconds >= 0), 
	CONSTRAINT ck_kernel_row_gmacs CHECK (gmacs + 0 = gmacs AND gmacs < 1e308 AND gmacs > -1e308 AND gmacs >= 0), 
	CONSTRAINT ck_kernel_row_bytes_moved CHECK (bytes_moved + 0 = bytes_moved AND bytes_moved < 1e308 AND bytes_moved > -1e308 AND bytes_moved >= 0), 
	CONSTRAINT ck_kernel_row_sm_throughput CHECK (sm_throughput + 0 = sm_throughput AND sm_throughput < 1e308 AND sm_throughput > -1e308 AND sm_throughput >= 0), 
	CONSTRAINT ck_kernel_row_memory_throughput CHECK (memory_throughput + 0 = memory_throughput AND memory_throughput < 1e308 AND memory_throughput > -1e308 AND memory_throughput >= 0), 
	CONSTRAINT ck_kernel_row_achieved_occupancy CHECK (achieved_occupancy + 0 = achieved_occupancy AND achieved_occupancy < 1e308 AND achieved_occupancy > -1e308 AND achieved_occupancy >= 0), 
	CONSTRAINT ck_kernel_row_l1_hit_rate CHECK (l1_hit_rate + 0 = l1_hit_rate AND l1_hit_rate < 1e308 AND l1_hit_rate > -1e308 AND l1_hit_rate >= 0), 
	CONSTRAINT ck_kernel_row_l2_hit_rate CHECK (l2_hit_rate + 0 = l2_hit_rate AND l2_hit_rate < 1e308 AND l2_hit_rate > -1e308 AND l2_hit_rate >= 0), 
	CONSTRAINT fk_kernel_row_profile_id FOREIGN KEY(profile_id) REFERENCES profile_row (profile_id), 
	CONSTRAINT fk_kernel_row_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
INSERT INTO "kernel_row" VALUES('4c9b5a51e33c1a34',0,1,'aten::addmm','operator',48.0,0.01,0.5,20000000.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "kernel_row" VALUES('4c9b5a51e33c1a34',1,1,'aten::gelu','operator',12.0,0.01,NULL,10000000.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "kernel_row" VALUES('88b9d679e6a239ab',0,1,'aten::addmm','operator',48.0,0.006,0.5,20000000.0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "kernel_row" VALUES('88b9d679e6a239ab',1,1,'aten::gelu','operator',12.0,0.006,NULL,10000000.0,NULL,NULL,NULL,NULL,NULL);
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
	CONSTRAINT ck_metric_row_value CHECK (value + 0 = value AND value < 1e308 AND value > -1e308), 
	CONSTRAINT ck_metric_row_low CHECK (low + 0 = low AND low < 1e308 AND low > -1e308), 
	CONSTRAINT ck_metric_row_high CHECK (high + 0 = high AND high < 1e308 AND high > -1e308), 
	CONSTRAINT ck_metric_row_n CHECK (n + 0 = n AND n < 1e308 AND n > -1e308 AND n >= 0), 
	CONSTRAINT fk_metric_row_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
CREATE TABLE peak_row (
	id INTEGER NOT NULL, 
	environment VARCHAR NOT NULL, 
	host VARCHAR NOT NULL, 
	attempt INTEGER, 
	measured_at FLOAT NOT NULL, 
	dtype VARCHAR NOT NULL, 
	threads INTEGER, 
	gflops FLOAT NOT NULL, 
	gb_per_s FLOAT NOT NULL, 
	CONSTRAINT pk_peak_row PRIMARY KEY (id), 
	CONSTRAINT ck_peak_row_measured_at CHECK (measured_at + 0 = measured_at AND measured_at < 1e308 AND measured_at > -1e308 AND measured_at > 0), 
	CONSTRAINT ck_peak_row_gflops CHECK (gflops + 0 = gflops AND gflops < 1e308 AND gflops > -1e308 AND gflops > 0), 
	CONSTRAINT ck_peak_row_gb_per_s CHECK (gb_per_s + 0 = gb_per_s AND gb_per_s < 1e308 AND gb_per_s > -1e308 AND gb_per_s > 0), 
	CONSTRAINT ck_peak_row_threads CHECK (threads + 0 = threads AND threads < 1e308 AND threads > -1e308 AND threads > 0), 
	CONSTRAINT fk_peak_row_environment FOREIGN KEY(environment) REFERENCES environment (environment_id), 
	CONSTRAINT fk_peak_row_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
INSERT INTO "peak_row" VALUES(1,'bc186409938b9f2d','here',1,1.79539326072796821594e+09,'float32',2,100.0,10.0);
CREATE TABLE profile_row (
	profile_id VARCHAR NOT NULL, 
	attempt INTEGER, 
	arm INTEGER NOT NULL, 
	source VARCHAR, 
	tool VARCHAR NOT NULL, 
	phase VARCHAR NOT NULL, 
	digest VARCHAR, 
	file VARCHAR, 
	comparison_id VARCHAR, 
	side VARCHAR, 
	label VARCHAR, 
	environment VARCHAR, 
	device_name VARCHAR, 
	recorded_at FLOAT NOT NULL, 
	forwards INTEGER NOT NULL, 
	wall_s FLOAT, 
	profiled_wall_s FLOAT, 
	launches FLOAT NOT NULL, 
	covered FLOAT, 
	allocations FLOAT, 
	allocated_bytes FLOAT, 
	CONSTRAINT pk_profile_row PRIMARY KEY (profile_id), 
	CONSTRAINT ck_profile_row_source CHECK (source IN ('measured', 'imported', 'published')), 
	CONSTRAINT ck_profile_row_tool CHECK (tool IN ('torch', 'nsys', 'ncu')), 
	CONSTRAINT ck_profile_row_phase CHECK (phase IN ('forward', 'prefill', 'decode')), 
	CONSTRAINT ck_profile_row_side CHECK (side IN ('baseline', 'arm')), 
	CONSTRAINT ck_profile_row_forwards CHECK (forwards + 0 = forwards AND forwards < 1e308 AND forwards > -1e308 AND forwards > 0), 
	CONSTRAINT ck_profile_row_recorded_at CHECK (recorded_at + 0 = recorded_at AND recorded_at < 1e308 AND recorded_at > -1e308 AND recorded_at > 0), 
	CONSTRAINT ck_profile_row_wall_s CHECK (wall_s + 0 = wall_s AND wall_s < 1e308 AND wall_s > -1e308 AND wall_s >= 0), 
	CONSTRAINT ck_profile_row_profiled_wall_s CHECK (profiled_wall_s + 0 = profiled_wall_s AND profiled_wall_s < 1e308 AND profiled_wall_s > -1e308 AND profiled_wall_s >= 0), 
	CONSTRAINT ck_profile_row_launches CHECK (launches + 0 = launches AND launches < 1e308 AND launches > -1e308 AND launches >= 0), 
	CONSTRAINT ck_profile_row_covered CHECK (covered + 0 = covered AND covered < 1e308 AND covered > -1e308 AND covered >= 0), 
	CONSTRAINT ck_profile_row_allocations CHECK (allocations + 0 = allocations AND allocations < 1e308 AND allocations > -1e308 AND allocations >= 0), 
	CONSTRAINT ck_profile_row_allocated_bytes CHECK (allocated_bytes + 0 = allocated_bytes AND allocated_bytes < 1e308 AND allocated_bytes > -1e308 AND allocated_bytes >= 0), 
	CONSTRAINT fk_profile_row_attempt FOREIGN KEY(attempt) REFERENCES attempt (id), 
	CONSTRAINT fk_profile_row_environment FOREIGN KEY(environment) REFERENCES environment (environment_id)
);
INSERT INTO "profile_row" VALUES('4c9b5a51e33c1a34',1,0,NULL,'torch','forward',NULL,NULL,NULL,NULL,NULL,NULL,NULL,1790000000.0,10,0.025,0.03,200.0,1.0,40.0,5000000.0);
INSERT INTO "profile_row" VALUES('88b9d679e6a239ab',1,1,NULL,'torch','forward',NULL,NULL,NULL,NULL,NULL,NULL,NULL,1790000000.0,10,0.018,2.1599999999999997674e-02,225.0,1.0,40.0,5000000.0);
CREATE TABLE profile_time_row (
	profile_id VARCHAR NOT NULL, 
	time_class VARCHAR NOT NULL, 
	attempt INTEGER, 
	seconds FLOAT NOT NULL, 
	CONSTRAINT pk_profile_time_row PRIMARY KEY (profile_id, time_class), 
	CONSTRAINT ck_profile_time_row_time_class CHECK (time_class IN ('device', 'launch', 'host', 'sync', 'idle')), 
	CONSTRAINT ck_profile_time_row_seconds CHECK (seconds + 0 = seconds AND seconds < 1e308 AND seconds > -1e308 AND seconds >= 0), 
	CONSTRAINT fk_profile_time_row_profile_id FOREIGN KEY(profile_id) REFERENCES profile_row (profile_id), 
	CONSTRAINT fk_profile_time_row_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
INSERT INTO "profile_time_row" VALUES('4c9b5a51e33c1a34','device',1,0.02);
INSERT INTO "profile_time_row" VALUES('4c9b5a51e33c1a34','host',1,0.005);
INSERT INTO "profile_time_row" VALUES('88b9d679e6a239ab','device',1,0.012);
INSERT INTO "profile_time_row" VALUES('88b9d679e6a239ab','host',1,0.006);
CREATE TABLE reference_row (
	reference VARCHAR NOT NULL, 
	entry INTEGER NOT NULL, 
	environment VARCHAR NOT NULL, 
	source VARCHAR NOT NULL, 
	title VARCHAR NOT NULL, 
	owner VARCHAR NOT NULL, 
	year INTEGER, 
	place VARCHAR NOT NULL, 
	url VARCHAR, 
	device_name VARCHAR, 
	software VARCHAR, 
	counter VARCHAR, 
	tuned BOOLEAN, 
	label VARCHAR NOT NULL, 
	is_baseline BOOLEAN NOT NULL, 
	method VARCHAR, 
	model VARCHAR, 
	setting VARCHAR, 
	image_size INTEGER, 
	tokens INTEGER, 
	tokens_final INTEGER, 
	batch_size INTEGER, 
	keep_rate FLOAT, 
	r FLOAT, 
	sparsity FLOAT, 
	latency_ms FLOAT, 
	latency_unit VARCHAR, 
	throughput FLOAT, 
	gmacs_baseline FLOAT, 
	gmacs FLOAT, 
	speedup FLOAT, 
	speedup_stated FLOAT, 
	kernel_ms FLOAT, 
	kernels INTEGER, 
	forwards INTEGER, 
	top1_baseline FLOAT, 
	top1 FLOAT, 
	images INTEGER, 
	perplexity FLOAT, 
	counters VARCHAR NOT NULL, 
	note VARCHAR, 
	digest VARCHAR NOT NULL, 
	payload VARCHAR NOT NULL, 
	set_payload VARCHAR NOT NULL, 
	CONSTRAINT pk_reference_row PRIMARY KEY (reference, entry), 
	CONSTRAINT ck_reference_row_source CHECK (source IN ('published')), 
	CONSTRAINT ck_reference_row_latency_unit CHECK (latency_unit IN ('per_batch', 'per_image')), 
	CONSTRAINT ck_reference_row_batch_size CHECK (batch_size + 0 = batch_size AND batch_size < 1e308 AND batch_size > -1e308 AND batch_size > 0), 
	CONSTRAINT ck_reference_row_latency_ms CHECK (latency_ms + 0 = latency_ms AND latency_ms < 1e308 AND latency_ms > -1e308 AND latency_ms > 0), 
	CONSTRAINT ck_reference_row_throughput CHECK (throughput + 0 = throughput AND throughput < 1e308 AND throughput > -1e308 AND throughput > 0), 
	CONSTRAINT ck_reference_row_gmacs_baseline CHECK (gmacs_baseline + 0 = gmacs_baseline AND gmacs_baseline < 1e308 AND gmacs_baseline > -1e308 AND gmacs_baseline > 0), 
	CONSTRAINT ck_reference_row_gmacs CHECK (gmacs + 0 = gmacs AND gmacs < 1e308 AND gmacs > -1e308 AND gmacs > 0), 
	CONSTRAINT ck_reference_row_kernel_ms CHECK (kernel_ms + 0 = kernel_ms AND kernel_ms < 1e308 AND kernel_ms > -1e308 AND kernel_ms > 0), 
	CONSTRAINT ck_reference_row_speedup CHECK (speedup + 0 = speedup AND speedup < 1e308 AND speedup > -1e308 AND speedup > 0), 
	CONSTRAINT ck_reference_row_speedup_stated CHECK (speedup_stated + 0 = speedup_stated AND speedup_stated < 1e308 AND speedup_stated > -1e308 AND speedup_stated > 0), 
	CONSTRAINT ck_reference_row_tokens CHECK (tokens + 0 = tokens AND tokens < 1e308 AND tokens > -1e308 AND tokens >= 0), 
	CONSTRAINT ck_reference_row_tokens_final CHECK (tokens_final + 0 = tokens_final AND tokens_final < 1e308 AND tokens_final > -1e308 AND tokens_final >= 0), 
	CONSTRAINT ck_reference_row_kernels CHECK (kernels + 0 = kernels AND kernels < 1e308 AND kernels > -1e308 AND kernels >= 0), 
	CONSTRAINT ck_reference_row_forwards CHECK (forwards + 0 = forwards AND forwards < 1e308 AND forwards > -1e308 AND forwards >= 0), 
	CONSTRAINT ck_reference_row_images CHECK (images + 0 = images AND images < 1e308 AND images > -1e308 AND images >= 0), 
	CONSTRAINT ck_reference_row_top1 CHECK (top1 + 0 = top1 AND top1 < 1e308 AND top1 > -1e308), 
	CONSTRAINT ck_reference_row_top1_baseline CHECK (top1_baseline + 0 = top1_baseline AND top1_baseline < 1e308 AND top1_baseline > -1e308), 
	CONSTRAINT ck_reference_row_perplexity CHECK (perplexity + 0 = perplexity AND perplexity < 1e308 AND perplexity > -1e308), 
	CONSTRAINT ck_reference_row_keep_rate CHECK (keep_rate + 0 = keep_rate AND keep_rate < 1e308 AND keep_rate > -1e308), 
	CONSTRAINT ck_reference_row_r CHECK (r + 0 = r AND r < 1e308 AND r > -1e308), 
	CONSTRAINT ck_reference_row_sparsity CHECK (sparsity + 0 = sparsity AND sparsity < 1e308 AND sparsity > -1e308)
);
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
	bursts BLOB, 
	CONSTRAINT pk_sample PRIMARY KEY (attempt), 
	CONSTRAINT fk_sample_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
CREATE TABLE sample_series (
	attempt INTEGER NOT NULL, 
	metric VARCHAR NOT NULL, 
	seconds BLOB NOT NULL, 
	CONSTRAINT pk_sample_series PRIMARY KEY (attempt, metric), 
	CONSTRAINT fk_sample_series_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
CREATE TABLE sweep (
	id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	revision INTEGER NOT NULL, 
	text VARCHAR NOT NULL, 
	question VARCHAR NOT NULL, 
	settings VARCHAR NOT NULL, 
	submitted_at FLOAT NOT NULL, 
	CONSTRAINT pk_sweep PRIMARY KEY (id), 
	CONSTRAINT uq_sweep_name_revision UNIQUE (name, revision), 
	CONSTRAINT ck_sweep_revision CHECK (revision + 0 = revision AND revision < 1e308 AND revision > -1e308 AND revision > 0)
);
INSERT INTO "sweep" VALUES(1,'why',1,'text','Why?','{}',1.79539325888259792326e+09);
CREATE TABLE sweep_comparison_row (
	sweep INTEGER NOT NULL, 
	comparison_id VARCHAR NOT NULL, 
	CONSTRAINT pk_sweep_comparison_row PRIMARY KEY (sweep, comparison_id), 
	CONSTRAINT fk_sweep_comparison_row_sweep FOREIGN KEY(sweep) REFERENCES sweep (id), 
	CONSTRAINT fk_sweep_comparison_row_comparison_id FOREIGN KEY(comparison_id) REFERENCES comparison (comparison_id)
);
INSERT INTO "sweep_comparison_row" VALUES(1,'6d6844b2d84f635a');
CREATE TABLE sweep_job (
	sweep INTEGER NOT NULL, 
	job INTEGER NOT NULL, 
	CONSTRAINT pk_sweep_job PRIMARY KEY (sweep, job), 
	CONSTRAINT fk_sweep_job_sweep FOREIGN KEY(sweep) REFERENCES sweep (id), 
	CONSTRAINT fk_sweep_job_job FOREIGN KEY(job) REFERENCES job (id)
);
CREATE TABLE text_scores (
	attempt INTEGER NOT NULL, 
	listing VARCHAR NOT NULL, 
	payload BLOB NOT NULL, 
	windows INTEGER NOT NULL, 
	characters INTEGER NOT NULL, 
	complete BOOLEAN NOT NULL, 
	CONSTRAINT pk_text_scores PRIMARY KEY (attempt), 
	CONSTRAINT ck_text_scores_windows CHECK (windows + 0 = windows AND windows < 1e308 AND windows > -1e308 AND windows > 0), 
	CONSTRAINT ck_text_scores_characters CHECK (characters + 0 = characters AND characters < 1e308 AND characters > -1e308 AND characters >= 0), 
	CONSTRAINT fk_text_scores_attempt FOREIGN KEY(attempt) REFERENCES attempt (id)
);
CREATE INDEX ix_comparison_curve_id ON comparison (curve_id);
CREATE INDEX ix_comparison_method_model_image_size ON comparison (method, model, image_size);
CREATE INDEX ix_comparison_question_id ON comparison (question_id);
CREATE INDEX ix_job_state_id ON job (state, id);
CREATE INDEX ix_job_job_id ON job (job_id);
CREATE INDEX ix_job_curve_group_resources ON job (curve_group, resources);
CREATE INDEX ix_sweep_comparison_row_comparison_id ON sweep_comparison_row (comparison_id);
CREATE INDEX ix_sweep_job_job ON sweep_job (job);
CREATE INDEX ix_calibration_environment_size_class_created_at ON calibration (environment, size_class, created_at);
CREATE INDEX ix_break_even_row_curve_id_environment ON break_even_row (curve_id, environment);
CREATE INDEX ix_cost_model_row_curve_id_environment ON cost_model_row (curve_id, environment);
CREATE INDEX ix_attempt_job ON attempt (job);
CREATE INDEX ix_attempt_job_id ON attempt (job_id);
CREATE INDEX ix_arm_result_arm_condition_id ON arm_result (arm_condition_id);
CREATE INDEX ix_failure_attempt ON failure (attempt);
CREATE INDEX ix_profile_row_attempt ON profile_row (attempt);
CREATE INDEX ix_profile_row_comparison_id ON profile_row (comparison_id);
CREATE INDEX ix_profile_row_digest ON profile_row (digest);
CREATE INDEX ix_peak_row_environment ON peak_row (environment);
CREATE INDEX ix_peak_row_attempt ON peak_row (attempt);
CREATE INDEX ix_comparison_attempt_attempt ON comparison_attempt (attempt);
CREATE INDEX ix_profile_time_row_attempt ON profile_time_row (attempt);
CREATE INDEX ix_kernel_row_attempt ON kernel_row (attempt);
CREATE INDEX ix_effect_row_question_id_environment_host_measured_at ON effect_row (question_id, environment, host, measured_at);
CREATE VIEW effect AS SELECT effect_row.comparison_id, effect_row.question_id, comparison.arm_id, comparison.kind, effect_row.source, effect_row.measured_at, effect_row.environment, effect_row.host, environment.device, environment.device_name, comparison.model, comparison.weights, comparison.image_size, comparison.batch_size, comparison.dtype, comparison.attention, comparison.runtime, comparison.seed, comparison.method, comparison.params, comparison.data, comparison.corruption, comparison.severity, comparison.prompt_tokens, comparison.new_tokens, comparison.kv_cache, comparison.decoding, comparison."exclusive", comparison.spare_cores, comparison.wait_policy, comparison.pinning, comparison.baseline, comparison.baseline_id, comparison.condition_id, comparison.quality_arm_id, comparison.quality_pair_id, comparison.curve_id, effect_row.metric, effect_row.unit, effect_row.compared, effect_row.threads, effect_row.tokens, effect_row.tokens_final, effect_row.gmacs_baseline, effect_row.gmacs, effect_row.gmacs_overhead, effect_row.gmacs + coalesce(effect_row.gmacs_overhead, 0.0) AS gmacs_total, 1 - (effect_row.gmacs + coalesce(effect_row.gmacs_overhead, 0.0)) / (nullif(effect_row.gmacs_baseline, 0.0) + 0.0) AS gmacs_saved, effect_row.baseline_value, effect_row.arm_value, effect_row.arm_low, effect_row.arm_high, effect_row.device_value, effect_row.effect, effect_row.effect_low, effect_row.effect_high, effect_row.n, effect_row.rounds, effect_row.verdict, effect_row.floor, effect_row.flags, effect_row.analysis_version, effect_row.route, effect_row.process_sd, effect_row.calibration_id 
FROM effect_row JOIN comparison ON comparison.comparison_id = effect_row.comparison_id JOIN environment ON environment.environment_id = effect_row.environment 
WHERE (effect_row.effect IS NOT NULL OR effect_row.baseline_value IS NOT NULL OR effect_row.arm_value IS NOT NULL) AND NOT (EXISTS (SELECT newer.metric 
FROM effect_row AS newer 
WHERE newer.question_id = effect_row.question_id AND newer.environment = effect_row.environment AND newer.host = effect_row.host AND (newer.measured_at > effect_row.measured_at OR newer.measured_at = effect_row.measured_at AND newer.comparison_id > effect_row.comparison_id)));
CREATE VIEW speedup AS SELECT effect_row.comparison_id, effect_row.question_id, comparison.arm_id, comparison.kind, effect_row.source, effect_row.measured_at, effect_row.environment, effect_row.host, environment.device, environment.device_name, comparison.model, comparison.weights, comparison.image_size, comparison.batch_size, comparison.dtype, comparison.attention, comparison.runtime, comparison.seed, comparison.method, comparison.params, comparison.data, comparison.corruption, comparison.severity, comparison.prompt_tokens, comparison.new_tokens, comparison.kv_cache, comparison.decoding, comparison."exclusive", comparison.spare_cores, comparison.wait_policy, comparison.pinning, comparison.baseline, comparison.baseline_id, comparison.condition_id, comparison.quality_arm_id, comparison.quality_pair_id, comparison.curve_id, effect_row.metric, effect_row.threads, effect_row.tokens, effect_row.tokens_final, effect_row.gmacs_baseline, effect_row.gmacs, effect_row.gmacs_overhead, effect_row.gmacs + coalesce(effect_row.gmacs_overhead, 0.0) AS gmacs_total, 1 - (effect_row.gmacs + coalesce(effect_row.gmacs_overhead, 0.0)) / (nullif(effect_row.gmacs_baseline, 0.0) + 0.0) AS gmacs_saved, effect_row.baseline_value AS baseline_ms, effect_row.arm_value AS arm_ms, effect_row.device_value AS device_ms, effect_row.effect AS speedup, effect_row.effect_low AS speedup_low, effect_row.effect_high AS speedup_high, effect_row.n AS pairs, effect_row.rounds, effect_row.verdict, effect_row.floor, effect_row.flags, effect_row.route, effect_row.process_sd, effect_row.calibration_id 
FROM effect_row JOIN comparison ON comparison.comparison_id = effect_row.comparison_id JOIN environment ON environment.environment_id = effect_row.environment 
WHERE effect_row.compared = 'ratio' AND effect_row.effect IS NOT NULL AND NOT (EXISTS (SELECT newer.metric 
FROM effect_row AS newer 
WHERE newer.question_id = effect_row.question_id AND newer.environment = effect_row.environment AND newer.host = effect_row.host AND (newer.measured_at > effect_row.measured_at OR newer.measured_at = effect_row.measured_at AND newer.comparison_id > effect_row.comparison_id)));
CREATE VIEW accuracy AS SELECT effect_row.comparison_id, effect_row.question_id, comparison.arm_id, comparison.kind, effect_row.source, effect_row.measured_at, effect_row.environment, environment.device, environment.device_name, comparison.model, comparison.weights, comparison.method, comparison.params, comparison.baseline, comparison.baseline_id, comparison.dtype, comparison.attention, comparison.data, comparison.seed, comparison.condition_id, comparison.quality_arm_id, comparison.quality_pair_id, comparison.corruption, comparison.severity, comparison.image_size, effect_row.tokens, effect_row.tokens_final, effect_row.gmacs_baseline, effect_row.gmacs, effect_row.gmacs_overhead, effect_row.gmacs + coalesce(effect_row.gmacs_overhead, 0.0) AS gmacs_total, 1 - (effect_row.gmacs + coalesce(effect_row.gmacs_overhead, 0.0)) / (nullif(effect_row.gmacs_baseline, 0.0) + 0.0) AS gmacs_saved, 0 - effect_row.effect AS top1_drop, 0 - effect_row.effect_high AS top1_drop_low, 0 - effect_row.effect_low AS top1_drop_high, CAST(effect_row.n AS INTEGER) AS images, CAST(unreadable.arm_value AS INTEGER) AS unreadable, CAST(only_baseline_correct.arm_value AS INTEGER) AS only_baseline_correct, CAST(only_arm_correct.arm_value AS INTEGER) AS only_arm_correct, effect_row.baseline_value AS top1_baseline, effect_row.arm_value AS top1, effect_row.arm_low AS top1_low, effect_row.arm_high AS top1_high, top5.baseline_value AS top5_baseline, top5.arm_value AS top5, mcnemar_p.arm_value AS mcnemar_p, kl.arm_value AS kl, kl.arm_low AS kl_low, kl.arm_high AS kl_high, margin_change.arm_value AS margin_change, margin_change.arm_low AS margin_change_low, margin_change.arm_high AS margin_change_high, margin_change_p05.arm_value AS margin_change_p05, effect_row.verdict, effect_row.floor, effect_row.flags 
FROM effect_row JOIN comparison ON comparison.comparison_id = effect_row.comparison_id JOIN environment ON environment.environment_id = effect_row.environment LEFT OUTER JOIN effect_row AS top5 ON top5.comparison_id = effect_row.comparison_id AND top5.environment = effect_row.environment AND top5.host = effect_row.host AND top5.metric = 'top5' LEFT OUTER JOIN effect_row AS mcnemar_p ON mcnemar_p.comparison_id = effect_row.comparison_id AND mcnemar_p.environment = effect_row.environment AND mcnemar_p.host = effect_row.host AND mcnemar_p.metric = 'mcnemar_p' LEFT OUTER JOIN effect_row AS kl ON kl.comparison_id = effect_row.comparison_id AND kl.environment = effect_row.environment AND kl.host = effect_row.host AND kl.metric = 'kl' LEFT OUTER JOIN effect_row AS margin_change ON margin_change.comparison_id = effect_row.comparison_id AND margin_change.environment = effect_row.environment AND margin_change.host = effect_row.host AND margin_change.metric = 'margin_change' LEFT OUTER JOIN effect_row AS margin_change_p05 ON margin_change_p05.comparison_id = effect_row.comparison_id AND margin_change_p05.environment = effect_row.environment AND margin_change_p05.host = effect_row.host AND margin_change_p05.metric = 'margin_change_p05' LEFT OUTER JOIN effect_row AS unreadable ON unreadable.comparison_id = effect_row.comparison_id AND unreadable.environment = effect_row.environment AND unreadable.host = effect_row.host AND unreadable.metric = 'unreadable' LEFT OUTER JOIN effect_row AS only_baseline_correct ON only_baseline_correct.comparison_id = effect_row.comparison_id AND only_baseline_correct.environment = effect_row.environment AND only_baseline_correct.host = effect_row.host AND only_baseline_correct.metric = 'only_baseline_correct' LEFT OUTER JOIN effect_row AS only_arm_correct ON only_arm_correct.comparison_id = effect_row.comparison_id AND only_arm_correct.environment = effect_row.environment AND only_arm_correct.host = effect_row.host AND only_arm_correct.metric = 'only_arm_correct' 
WHERE effect_row.metric = 'top1' AND effect_row.effect IS NOT NULL AND NOT (EXISTS (SELECT newer.metric 
FROM effect_row AS newer 
WHERE newer.question_id = effect_row.question_id AND newer.environment = effect_row.environment AND newer.host = effect_row.host AND (newer.measured_at > effect_row.measured_at OR newer.measured_at = effect_row.measured_at AND newer.comparison_id > effect_row.comparison_id)));
CREATE VIEW quality AS SELECT effect_row.comparison_id, effect_row.question_id, comparison.arm_id, comparison.kind, effect_row.source, effect_row.measured_at, effect_row.environment, environment.device, environment.device_name, comparison.model, comparison.weights, comparison.method, comparison.params, comparison.baseline, comparison.baseline_id, comparison.dtype, comparison.attention, comparison.data, comparison.seed, comparison.condition_id, comparison.quality_arm_id, comparison.quality_pair_id, CAST(effect_row.n AS INTEGER) AS windows, CAST(windows_skipped.arm_value AS INTEGER) AS windows_skipped, CAST(bytes_scored.arm_value AS INTEGER) AS bytes, CAST(characters_scored.arm_value AS INTEGER) AS characters, CAST(tokens_scored.baseline_value AS INTEGER) AS tokens_baseline, CAST(tokens_scored.arm_value AS INTEGER) AS tokens, effect_row.baseline_value AS bits_per_byte_baseline, effect_row.arm_value AS bits_per_byte, effect_row.effect AS bits_per_byte_change, effect_row.effect_low AS bits_per_byte_change_low, effect_row.effect_high AS bits_per_byte_change_high, perplexity.baseline_value AS perplexity_baseline, perplexity.arm_value AS perplexity, top1_agreement.arm_value AS top1_agreement, top1_agreement.arm_low AS top1_agreement_low, top1_agreement.arm_high AS top1_agreement_high, kl.arm_value AS kl, kl.arm_low AS kl_low, kl.arm_high AS kl_high, effect_row.verdict, effect_row.floor, effect_row.flags 
FROM effect_row JOIN comparison ON comparison.comparison_id = effect_row.comparison_id JOIN environment ON environment.environment_id = effect_row.environment LEFT OUTER JOIN effect_row AS perplexity ON perplexity.comparison_id = effect_row.comparison_id AND perplexity.environment = effect_row.environment AND perplexity.host = effect_row.host AND perplexity.metric = 'perplexity' LEFT OUTER JOIN effect_row AS top1_agreement ON top1_agreement.comparison_id = effect_row.comparison_id AND top1_agreement.environment = effect_row.environment AND top1_agreement.host = effect_row.host AND top1_agreement.metric = 'top1_agreement' LEFT OUTER JOIN effect_row AS kl ON kl.comparison_id = effect_row.comparison_id AND kl.environment = effect_row.environment AND kl.host = effect_row.host AND kl.metric = 'kl' LEFT OUTER JOIN effect_row AS windows_skipped ON windows_skipped.comparison_id = effect_row.comparison_id AND windows_skipped.environment = effect_row.environment AND windows_skipped.host = effect_row.host AND windows_skipped.metric = 'windows_skipped' LEFT OUTER JOIN effect_row AS bytes_scored ON bytes_scored.comparison_id = effect_row.comparison_id AND bytes_scored.environment = effect_row.environment AND bytes_scored.host = effect_row.host AND bytes_scored.metric = 'bytes_scored' LEFT OUTER JOIN effect_row AS characters_scored ON characters_scored.comparison_id = effect_row.comparison_id AND characters_scored.environment = effect_row.environment AND characters_scored.host = effect_row.host AND characters_scored.metric = 'characters_scored' LEFT OUTER JOIN effect_row AS tokens_scored ON tokens_scored.comparison_id = effect_row.comparison_id AND tokens_scored.environment = effect_row.environment AND tokens_scored.host = effect_row.host AND tokens_scored.metric = 'tokens_scored' 
WHERE effect_row.metric = 'bits_per_byte' AND effect_row.effect IS NOT NULL AND NOT (EXISTS (SELECT newer.metric 
FROM effect_row AS newer 
WHERE newer.question_id = effect_row.question_id AND newer.environment = effect_row.environment AND newer.host = effect_row.host AND (newer.measured_at > effect_row.measured_at OR newer.measured_at = effect_row.measured_at AND newer.comparison_id > effect_row.comparison_id)));
CREATE VIEW break_even AS SELECT sweep.name AS sweep, break_even_row.environment, break_even_row.host, environment.device, environment.device_name, comparison.kind, break_even_row.metric, break_even_row.threads, break_even_row.axis, break_even_row.varied_parameter, break_even_row.verdict, break_even_row.x, break_even_row.x_low, break_even_row.x_high, break_even_row.direction, break_even_row.grid_limited, break_even_row.points, break_even_row.points_missing, break_even_row.why, break_even_row.floor, break_even_row.curve_id, comparison.model, comparison.weights, comparison.image_size, comparison.batch_size, comparison.dtype, comparison.attention, comparison.runtime, comparison.seed, comparison.method, comparison.params, comparison.data, comparison.prompt_tokens, comparison.new_tokens, comparison.kv_cache, comparison.decoding, comparison."exclusive", comparison.spare_cores, comparison.wait_policy, comparison.pinning, comparison.baseline, comparison.baseline_id, break_even_row.fitted, break_even_row.worst_loss, break_even_row.largest_gain, break_even_row.pairs_factor, break_even_row.point_alpha, break_even_row.more_seconds 
FROM break_even_row JOIN sweep ON sweep.id = break_even_row.sweep JOIN comparison ON comparison.comparison_id = break_even_row.comparison_id JOIN environment ON environment.environment_id = break_even_row.environment 
WHERE NOT (EXISTS (SELECT newer.id 
FROM sweep AS newer 
WHERE sweep.name = newer.name AND sweep.revision < newer.revision));
CREATE VIEW cost_model AS SELECT sweep.name AS sweep, cost_model_row.environment, cost_model_row.host, environment.device, environment.device_name, comparison.kind, cost_model_row.metric, cost_model_row.threads, cost_model_row.points, cost_model_row.verdict, cost_model_row.misfit_p, cost_model_row.work_unit, cost_model_row.alpha_baseline, cost_model_row.alpha_baseline_low, cost_model_row.alpha_baseline_high, cost_model_row.beta_baseline, cost_model_row.beta_baseline_low, cost_model_row.beta_baseline_high, cost_model_row.alpha, cost_model_row.alpha_low, cost_model_row.alpha_high, cost_model_row.beta, cost_model_row.beta_low, cost_model_row.beta_high, cost_model_row.predicted_x, cost_model_row.predicted_x_low, cost_model_row.predicted_x_high, cost_model_row.measured_x, cost_model_row.measured_x_low, cost_model_row.measured_x_high, cost_model_row.curve_id, comparison.model, comparison.weights, comparison.image_size, comparison.batch_size, comparison.dtype, comparison.attention, comparison.runtime, comparison.seed, comparison.method, comparison.params, comparison.data, comparison.prompt_tokens, comparison.new_tokens, comparison.kv_cache, comparison.decoding, comparison."exclusive", comparison.spare_cores, comparison.wait_policy, comparison.pinning, comparison.baseline, comparison.baseline_id 
FROM cost_model_row JOIN sweep ON sweep.id = cost_model_row.sweep JOIN comparison ON comparison.comparison_id = cost_model_row.comparison_id JOIN environment ON environment.environment_id = cost_model_row.environment 
WHERE NOT (EXISTS (SELECT newer.id 
FROM sweep AS newer 
WHERE sweep.name = newer.name AND sweep.revision < newer.revision));
CREATE VIEW failures AS SELECT DISTINCT effect_row.comparison_id, effect_row.question_id, effect_row.environment, environment.device, environment.device_name, comparison.kind, comparison.model, comparison.weights, comparison.image_size, comparison.batch_size, comparison.dtype, comparison.attention, comparison.runtime, comparison.method, comparison.params, comparison.data, comparison.corruption, comparison.severity, comparison.prompt_tokens, comparison.new_tokens, comparison.kv_cache, comparison.decoding, comparison."exclusive", comparison.spare_cores, comparison.wait_policy, comparison.pinning, comparison.threads, comparison.baseline, comparison.baseline_id, failure.reason, failure.message, failure.attempt, effect_row.measured_at AS at, attempt.host 
FROM effect_row JOIN failure ON failure.id = effect_row.failure JOIN attempt ON attempt.id = failure.attempt JOIN comparison ON comparison.comparison_id = effect_row.comparison_id JOIN environment ON environment.environment_id = effect_row.environment 
WHERE NOT (EXISTS (SELECT newer.metric 
FROM effect_row AS newer 
WHERE newer.question_id = effect_row.question_id AND newer.environment = effect_row.environment AND newer.host = effect_row.host AND (newer.measured_at > effect_row.measured_at OR newer.measured_at = effect_row.measured_at AND newer.comparison_id > effect_row.comparison_id)));
CREATE VIEW metric AS SELECT metric_row.attempt, metric_row.arm, metric_row.metric, metric_row.value, metric_row.unit, metric_row.low, metric_row.high, metric_row.n, arm_result.arm_id, attempt.environment, attempt.flags, attempt.host, arm_result.route 
FROM metric_row JOIN attempt ON attempt.id = metric_row.attempt LEFT OUTER JOIN arm_result ON arm_result.attempt = metric_row.attempt AND arm_result.arm = metric_row.arm;
CREATE VIEW sweep_comparison AS SELECT sweep.name AS sweep, sweep_comparison_row.comparison_id 
FROM sweep_comparison_row JOIN sweep ON sweep.id = sweep_comparison_row.sweep 
WHERE NOT (EXISTS (SELECT newer.id 
FROM sweep AS newer 
WHERE sweep.name = newer.name AND sweep.revision < newer.revision));
CREATE VIEW arm AS SELECT arm_result.attempt, arm_result.arm, arm_result.arm_id, arm_result.kind, arm_result.condition_id, arm_result.arm_condition_id, attempt.environment, attempt.host, environment.device, environment.device_name, arm_result.model, arm_result.weights, arm_result.image_size, arm_result.batch_size, arm_result.dtype, arm_result.attention, arm_result.runtime, arm_result.seed, arm_result.method, arm_result.params, arm_result.data, arm_result.corruption, arm_result.severity, arm_result.prompt_tokens, arm_result.new_tokens, arm_result.kv_cache, arm_result.decoding, arm_result."exclusive", arm_result.spare_cores, arm_result.wait_policy, arm_result.pinning, arm_result.threads, arm_result.batch, arm_result.parameters, arm_result.tokens, arm_result.tokens_final, arm_result.gmacs, arm_result.gmacs_overhead, arm_result.gmacs + coalesce(arm_result.gmacs_overhead, 0.0) AS gmacs_total, metrics.latency_ms, metrics.ttft_ms, metrics.tpot_ms, metrics.time_per_char_ms, metrics.top1, metrics.bits_per_byte, metrics.top5, metrics.kl, metrics.margin_change, metrics.margin_change_p05, metrics.mcnemar_p, metrics.only_baseline_correct, metrics.only_arm_correct, metrics.unreadable, metrics.perplexity, metrics.top1_agreement, metrics.agreement, metrics.windows_skipped, metrics.bytes_scored, metrics.characters_scored, metrics.tokens_scored, metrics.device_latency_ms, metrics.throughput, metrics.steady_ratio, metrics.energy_per_image, metrics.relative_cost, metrics.diversity, metrics.cka, metrics.angle, metrics.tpot_p95_ms, metrics.prefill_tokens_per_s, metrics.decode_tokens_per_s, metrics.chars_per_s, metrics.base_tokens_per_s, metrics.tokenizer_s, metrics.load_s, metrics.achieved_gb_per_s, metrics.peak_gb_per_s, metrics.kv_bytes_needed, metrics.kv_bytes_resident, metrics.kv_bytes_virtual, metrics.rss_isolated_bytes, metrics.peak_rss_isolated_bytes, metrics.cuda_peak_allocated_isolated_bytes, metrics.cuda_peak_reserved_isolated_bytes, metrics.rss_before_bytes, metrics.peak_rss_bytes, metrics.cuda_allocated_before_bytes, metrics.cuda_peak_allocated_bytes, metrics.cuda_peak_reserved_bytes, metrics.mean_power, metrics.outlier_share, metrics.energy_per_token, metrics.energy_per_char, metrics.gmacs_ttft, metrics.gmacs_tpot, metrics.gmacs_overhead_ttft, metrics.gmacs_overhead_tpot, metrics.characters, metrics.tokens_decoded, metrics.forward_wall_ms, metrics.prefill_wall_ms, metrics.decode_wall_ms, metrics.achieved_sparsity, metrics.kernel_calls, metrics.fallback_calls, arm_result.flags AS arm_flags, attempt.flags AS job_flags, attempt.source, attempt.ended_at, arm_result.route 
FROM arm_result JOIN attempt ON attempt.id = arm_result.attempt JOIN environment ON environment.environment_id = attempt.environment LEFT OUTER JOIN (SELECT metric_row.attempt AS attempt, metric_row.arm AS arm, max(CASE WHEN (metric_row.metric = 'latency') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS latency_ms, max(CASE WHEN (metric_row.metric = 'ttft') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS ttft_ms, max(CASE WHEN (metric_row.metric = 'tpot') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS tpot_ms, max(CASE WHEN (metric_row.metric = 'time_per_char') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS time_per_char_ms, max(CASE WHEN (metric_row.metric = 'top1') THEN metric_row.value END) AS top1, max(CASE WHEN (metric_row.metric = 'bits_per_byte') THEN metric_row.value END) AS bits_per_byte, max(CASE WHEN (metric_row.metric = 'top5') THEN metric_row.value END) AS top5, max(CASE WHEN (metric_row.metric = 'kl') THEN metric_row.value END) AS kl, max(CASE WHEN (metric_row.metric = 'margin_change') THEN metric_row.value END) AS margin_change, max(CASE WHEN (metric_row.metric = 'margin_change_p05') THEN metric_row.value END) AS margin_change_p05, max(CASE WHEN (metric_row.metric = 'mcnemar_p') THEN metric_row.value END) AS mcnemar_p, max(CASE WHEN (metric_row.metric = 'only_baseline_correct') THEN metric_row.value END) AS only_baseline_correct, max(CASE WHEN (metric_row.metric = 'only_arm_correct') THEN metric_row.value END) AS only_arm_correct, max(CASE WHEN (metric_row.metric = 'unreadable') THEN metric_row.value END) AS unreadable, max(CASE WHEN (metric_row.metric = 'perplexity') THEN metric_row.value END) AS perplexity, max(CASE WHEN (metric_row.metric = 'top1_agreement') THEN metric_row.value END) AS top1_agreement, max(CASE WHEN (metric_row.metric = 'agreement') THEN metric_row.value END) AS agreement, max(CASE WHEN (metric_row.metric = 'windows_skipped') THEN metric_row.value END) AS windows_skipped, max(CASE WHEN (metric_row.metric = 'bytes_scored') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS bytes_scored, max(CASE WHEN (metric_row.metric = 'characters_scored') THEN metric_row.value END) AS characters_scored, max(CASE WHEN (metric_row.metric = 'tokens_scored') THEN metric_row.value END) AS tokens_scored, max(CASE WHEN (metric_row.metric = 'device_latency') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS device_latency_ms, max(CASE WHEN (metric_row.metric = 'throughput') THEN metric_row.value END) AS throughput, max(CASE WHEN (metric_row.metric = 'steady_ratio') THEN metric_row.value END) AS steady_ratio, max(CASE WHEN (metric_row.metric = 'energy_per_image') THEN metric_row.value END) AS energy_per_image, max(CASE WHEN (metric_row.metric = 'relative_cost') THEN metric_row.value END) AS relative_cost, max(CASE WHEN (metric_row.metric = 'diversity') THEN metric_row.value END) AS diversity, max(CASE WHEN (metric_row.metric = 'cka') THEN metric_row.value END) AS cka, max(CASE WHEN (metric_row.metric = 'angle') THEN metric_row.value END) AS angle, max(CASE WHEN (metric_row.metric = 'tpot_p95') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS tpot_p95_ms, max(CASE WHEN (metric_row.metric = 'prefill_tokens_per_s') THEN metric_row.value END) AS prefill_tokens_per_s, max(CASE WHEN (metric_row.metric = 'decode_tokens_per_s') THEN metric_row.value END) AS decode_tokens_per_s, max(CASE WHEN (metric_row.metric = 'chars_per_s') THEN metric_row.value END) AS chars_per_s, max(CASE WHEN (metric_row.metric = 'base_tokens_per_s') THEN metric_row.value END) AS base_tokens_per_s, max(CASE WHEN (metric_row.metric = 'tokenizer_s') THEN metric_row.value END) AS tokenizer_s, max(CASE WHEN (metric_row.metric = 'load_s') THEN metric_row.value END) AS load_s, max(CASE WHEN (metric_row.metric = 'achieved_gb_per_s') THEN metric_row.value END) AS achieved_gb_per_s, max(CASE WHEN (metric_row.metric = 'peak_gb_per_s') THEN metric_row.value END) AS peak_gb_per_s, max(CASE WHEN (metric_row.metric = 'kv_bytes_needed') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS kv_bytes_needed, max(CASE WHEN (metric_row.metric = 'kv_bytes_resident') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS kv_bytes_resident, max(CASE WHEN (metric_row.metric = 'kv_bytes_virtual') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS kv_bytes_virtual, max(CASE WHEN (metric_row.metric = 'rss_isolated') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS rss_isolated_bytes, max(CASE WHEN (metric_row.metric = 'peak_rss_isolated') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS peak_rss_isolated_bytes, max(CASE WHEN (metric_row.metric = 'cuda_peak_allocated_isolated') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS cuda_peak_allocated_isolated_bytes, max(CASE WHEN (metric_row.metric = 'cuda_peak_reserved_isolated') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS cuda_peak_reserved_isolated_bytes, max(CASE WHEN (metric_row.metric = 'rss_before') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS rss_before_bytes, max(CASE WHEN (metric_row.metric = 'peak_rss') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS peak_rss_bytes, max(CASE WHEN (metric_row.metric = 'cuda_allocated_before') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS cuda_allocated_before_bytes, max(CASE WHEN (metric_row.metric = 'cuda_peak_allocated') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS cuda_peak_allocated_bytes, max(CASE WHEN (metric_row.metric = 'cuda_peak_reserved') THEN metric_row.value * CASE WHEN (metric_row.unit = 'MiB') THEN 1048576 ELSE 1 END END) AS cuda_peak_reserved_bytes, max(CASE WHEN (metric_row.metric = 'mean_power') THEN metric_row.value END) AS mean_power, max(CASE WHEN (metric_row.metric = 'outlier_share') THEN metric_row.value END) AS outlier_share, max(CASE WHEN (metric_row.metric = 'energy_per_token') THEN metric_row.value END) AS energy_per_token, max(CASE WHEN (metric_row.metric = 'energy_per_char') THEN metric_row.value END) AS energy_per_char, max(CASE WHEN (metric_row.metric = 'gmacs_ttft') THEN metric_row.value END) AS gmacs_ttft, max(CASE WHEN (metric_row.metric = 'gmacs_tpot') THEN metric_row.value END) AS gmacs_tpot, max(CASE WHEN (metric_row.metric = 'gmacs_overhead_ttft') THEN metric_row.value END) AS gmacs_overhead_ttft, max(CASE WHEN (metric_row.metric = 'gmacs_overhead_tpot') THEN metric_row.value END) AS gmacs_overhead_tpot, max(CASE WHEN (metric_row.metric = 'characters') THEN metric_row.value END) AS characters, max(CASE WHEN (metric_row.metric = 'tokens_decoded') THEN metric_row.value END) AS tokens_decoded, max(CASE WHEN (metric_row.metric = 'forward_wall') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS forward_wall_ms, max(CASE WHEN (metric_row.metric = 'prefill_wall') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS prefill_wall_ms, max(CASE WHEN (metric_row.metric = 'decode_wall') THEN metric_row.value * CASE WHEN (metric_row.unit = 's') THEN 1000 ELSE 1 END END) AS decode_wall_ms, max(CASE WHEN (metric_row.metric = 'achieved_sparsity') THEN metric_row.value END) AS achieved_sparsity, max(CASE WHEN (metric_row.metric = 'kernel_calls') THEN metric_row.value END) AS kernel_calls, max(CASE WHEN (metric_row.metric = 'fallback_calls') THEN metric_row.value END) AS fallback_calls 
FROM metric_row GROUP BY metric_row.attempt, metric_row.arm) AS metrics ON metrics.attempt = arm_result.attempt AND metrics.arm = arm_result.arm 
WHERE NOT (EXISTS (SELECT other.attempt 
FROM arm_result AS other JOIN attempt AS other_attempt ON other_attempt.id = other.attempt 
WHERE other.arm_condition_id = arm_result.arm_condition_id AND other_attempt.environment = attempt.environment AND other_attempt.host = attempt.host AND (CASE WHEN (((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',thermal/_slowdown,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',hardware/_slowdown,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',power/_brake,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',quota/_throttled,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',throttled,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',consistency/_check/_failed,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',state/_changed,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',token/_trace/_mismatch,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',text/_differs,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',text/_too/_short,' || '%' ESCAPE '/')) THEN 1 ELSE 0 END < CASE WHEN (((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',thermal/_slowdown,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',hardware/_slowdown,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',power/_brake,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',quota/_throttled,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',throttled,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',consistency/_check/_failed,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',state/_changed,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',token/_trace/_mismatch,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',text/_differs,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',text/_too/_short,' || '%' ESCAPE '/')) THEN 1 ELSE 0 END OR CASE WHEN (((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',thermal/_slowdown,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',hardware/_slowdown,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',power/_brake,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',quota/_throttled,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',throttled,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',consistency/_check/_failed,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',state/_changed,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',token/_trace/_mismatch,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',text/_differs,' || '%' ESCAPE '/') OR ((',' || other.flags || ',' || other_attempt.flags || ',') LIKE '%' || ',text/_too/_short,' || '%' ESCAPE '/')) THEN 1 ELSE 0 END = CASE WHEN (((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',thermal/_slowdown,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',hardware/_slowdown,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',power/_brake,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',quota/_throttled,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',throttled,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',consistency/_check/_failed,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',state/_changed,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',token/_trace/_mismatch,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',text/_differs,' || '%' ESCAPE '/') OR ((',' || arm_result.flags || ',' || attempt.flags || ',') LIKE '%' || ',text/_too/_short,' || '%' ESCAPE '/')) THEN 1 ELSE 0 END AND other_attempt.id > attempt.id)));
CREATE VIEW generation AS SELECT arm.attempt, arm.arm, arm.arm_id, arm.kind, arm.condition_id, arm.arm_condition_id, arm.environment, arm.host, arm.device, arm.device_name, arm.model, arm.weights, arm.batch_size, arm.dtype, arm.attention, arm.runtime, arm.seed, arm.method, arm.params, arm.data, arm.prompt_tokens, arm.new_tokens, arm.kv_cache, arm.decoding, arm."exclusive", arm.spare_cores, arm.wait_policy, arm.pinning, arm.threads, arm.parameters, arm.tokens, arm.tokens_final, arm.gmacs, arm.gmacs_overhead, arm.gmacs_total, arm.ttft_ms, arm.tpot_ms, arm.time_per_char_ms, arm.tpot_p95_ms, arm.prefill_tokens_per_s, arm.decode_tokens_per_s, arm.chars_per_s, arm.base_tokens_per_s, arm.tokenizer_s, arm.load_s, arm.achieved_gb_per_s, arm.peak_gb_per_s, arm.kv_bytes_needed, arm.kv_bytes_resident, arm.kv_bytes_virtual, arm.rss_isolated_bytes, arm.peak_rss_isolated_bytes, arm.cuda_peak_allocated_isolated_bytes, arm.cuda_peak_reserved_isolated_bytes, arm.rss_before_bytes, arm.peak_rss_bytes, arm.cuda_allocated_before_bytes, arm.cuda_peak_allocated_bytes, arm.cuda_peak_reserved_bytes, arm.mean_power, arm.outlier_share, arm.energy_per_token, arm.energy_per_char, arm.gmacs_ttft, arm.gmacs_tpot, arm.gmacs_overhead_ttft, arm.gmacs_overhead_tpot, arm.characters, arm.tokens_decoded, arm.prefill_wall_ms, arm.decode_wall_ms, arm.achieved_sparsity, arm.kernel_calls, arm.fallback_calls, arm.arm_flags, arm.job_flags, arm.source, arm.ended_at, arm.route 
FROM arm 
WHERE arm.kind IN ('generation');
CREATE VIEW reference AS SELECT reference_row.reference, reference_row.entry, reference_row.environment, reference_row.source, reference_row.title, reference_row.owner, reference_row.year, reference_row.place, reference_row.url, reference_row.device_name, reference_row.software, reference_row.counter, reference_row.tuned, reference_row.label, reference_row.is_baseline, reference_row.method, reference_row.model, reference_row.setting, reference_row.image_size, reference_row.tokens, reference_row.tokens_final, reference_row.batch_size, reference_row.keep_rate, reference_row.r, reference_row.sparsity, reference_row.latency_ms, reference_row.latency_unit, reference_row.throughput, reference_row.gmacs_baseline, reference_row.gmacs, reference_row.speedup, reference_row.speedup_stated, reference_row.kernel_ms, reference_row.kernels, reference_row.forwards, reference_row.top1_baseline, reference_row.top1, reference_row.images, reference_row.perplexity, reference_row.counters, reference_row.note 
FROM reference_row;
CREATE VIEW execution AS SELECT attempt.id AS attempt, attempt.job_id, attempt.round, attempt.process, attempt.source, attempt.environment, attempt.host, environment.device, environment.device_name, attempt.started_at, attempt.ended_at, attempt.flags, nullif(substr(CASE WHEN ((',' || attempt.flags || ',') LIKE '%' || ',thermal/_slowdown,' || '%' ESCAPE '/') THEN ',thermal_slowdown' ELSE '' END || CASE WHEN ((',' || attempt.flags || ',') LIKE '%' || ',hardware/_slowdown,' || '%' ESCAPE '/') THEN ',hardware_slowdown' ELSE '' END || CASE WHEN ((',' || attempt.flags || ',') LIKE '%' || ',power/_brake,' || '%' ESCAPE '/') THEN ',power_brake' ELSE '' END || CASE WHEN ((',' || attempt.flags || ',') LIKE '%' || ',quota/_throttled,' || '%' ESCAPE '/') THEN ',quota_throttled' ELSE '' END || CASE WHEN ((',' || attempt.flags || ',') LIKE '%' || ',throttled,' || '%' ESCAPE '/') THEN ',throttled' ELSE '' END, 2), '') AS quarantine, attempt.calibration_id, attempt.system_metrics 
FROM attempt JOIN environment ON environment.environment_id = attempt.environment;
CREATE VIEW profile AS SELECT profile_row.profile_id, profile_row.attempt, profile_row.arm, profile_row.tool, profile_row.phase, coalesce(attempt.source, profile_row.source) AS source, profile_row.file, profile_row.comparison_id, profile_row.side, profile_row.label, coalesce(arm_result.arm_id, CASE WHEN (profile_row.side = 'arm') THEN comparison.arm_id END) AS arm_id, coalesce(arm_result.kind, comparison.kind) AS kind, coalesce(arm_result.condition_id, comparison.condition_id) AS condition_id, coalesce(arm_result.method, CASE WHEN (profile_row.side = 'arm') THEN comparison.method END) AS method, coalesce(arm_result.params, CASE WHEN (profile_row.side = 'arm') THEN comparison.params END) AS params, coalesce(attempt.environment, profile_row.environment) AS environment, attempt.host, environment.device, coalesce(environment.device_name, profile_row.device_name) AS device_name, profile_time_row.time_class, 1000.0 * profile_time_row.seconds AS ms, profile_time_row.seconds / (nullif(profile_row.wall_s, 0.0) + 0.0) AS share, 1000.0 * profile_row.wall_s AS wall_ms, 1000.0 * profile_row.profiled_wall_s AS profiled_wall_ms, profile_row.forwards, profile_row.launches, profile_row.covered, profile_row.allocations, profile_row.allocated_bytes, (SELECT sum(kernel_row.gmacs) AS sum_1 
FROM kernel_row 
WHERE kernel_row.profile_id = profile_row.profile_id) AS gmacs, (SELECT sum(kernel_row.bytes_moved) AS sum_2 
FROM kernel_row 
WHERE kernel_row.profile_id = profile_row.profile_id) AS bytes_moved, (SELECT sum(kernel_row.seconds) AS sum_3 
FROM kernel_row 
WHERE kernel_row.profile_id = profile_row.profile_id AND kernel_row.gmacs > 0) / (nullif((SELECT sum(kernel_row.seconds) AS sum_4 
FROM kernel_row 
WHERE kernel_row.profile_id = profile_row.profile_id), 0.0) + 0.0) AS product_share, (SELECT max(peak_row.gflops) AS max_1 
FROM peak_row 
WHERE peak_row.attempt = profile_row.attempt AND peak_row.dtype = arm_result.dtype) AS peak_gflops, (SELECT max(peak_row.gb_per_s) AS max_2 
FROM peak_row 
WHERE peak_row.attempt = profile_row.attempt AND peak_row.dtype = arm_result.dtype) AS peak_gb_per_s, coalesce(arm_result.model, comparison.model) AS model, coalesce(arm_result.weights, comparison.weights) AS weights, coalesce(arm_result.image_size, comparison.image_size) AS image_size, coalesce(arm_result.batch_size, comparison.batch_size) AS batch_size, coalesce(arm_result.dtype, comparison.dtype) AS dtype, coalesce(arm_result.attention, comparison.attention) AS attention, coalesce(arm_result.runtime, comparison.runtime) AS runtime, coalesce(arm_result.seed, comparison.seed) AS seed, coalesce(arm_result.data, comparison.data) AS data, coalesce(arm_result.corruption, comparison.corruption) AS corruption, coalesce(arm_result.severity, comparison.severity) AS severity, coalesce(arm_result.prompt_tokens, comparison.prompt_tokens) AS prompt_tokens, coalesce(arm_result.new_tokens, comparison.new_tokens) AS new_tokens, coalesce(arm_result.kv_cache, comparison.kv_cache) AS kv_cache, coalesce(arm_result.decoding, comparison.decoding) AS decoding, coalesce(arm_result."exclusive", comparison."exclusive") AS "exclusive", coalesce(arm_result.spare_cores, comparison.spare_cores) AS spare_cores, coalesce(arm_result.wait_policy, comparison.wait_policy) AS wait_policy, coalesce(arm_result.pinning, comparison.pinning) AS pinning, arm_result.threads, arm_result.flags AS arm_flags, attempt.flags AS job_flags, profile_row.recorded_at 
FROM profile_row LEFT OUTER JOIN attempt ON attempt.id = profile_row.attempt LEFT OUTER JOIN arm_result ON arm_result.attempt = profile_row.attempt AND arm_result.arm = profile_row.arm LEFT OUTER JOIN comparison ON comparison.comparison_id = profile_row.comparison_id LEFT OUTER JOIN environment ON environment.environment_id = coalesce(attempt.environment, profile_row.environment) JOIN profile_time_row ON profile_time_row.profile_id = profile_row.profile_id;
CREATE VIEW kernel AS SELECT profile_row.profile_id, profile_row.attempt, profile_row.arm, profile_row.tool, profile_row.phase, coalesce(attempt.source, profile_row.source) AS source, profile_row.file, profile_row.comparison_id, profile_row.side, profile_row.label, coalesce(arm_result.arm_id, CASE WHEN (profile_row.side = 'arm') THEN comparison.arm_id END) AS arm_id, coalesce(arm_result.kind, comparison.kind) AS kind, coalesce(arm_result.condition_id, comparison.condition_id) AS condition_id, coalesce(arm_result.method, CASE WHEN (profile_row.side = 'arm') THEN comparison.method END) AS method, coalesce(arm_result.params, CASE WHEN (profile_row.side = 'arm') THEN comparison.params END) AS params, coalesce(attempt.environment, profile_row.environment) AS environment, attempt.host, environment.device, coalesce(environment.device_name, profile_row.device_name) AS device_name, kernel_row.place, kernel_row.name, kernel_row.activity, kernel_row.count, 1000.0 * kernel_row.seconds AS ms, kernel_row.gmacs, kernel_row.bytes_moved, (2 * kernel_row.gmacs) / (nullif(kernel_row.seconds, 0.0) + 0.0) AS gflops, (kernel_row.bytes_moved / (1000000000.0 + 0.0)) / (nullif(kernel_row.seconds, 0.0) + 0.0) AS gb_per_s, kernel_row.sm_throughput, kernel_row.memory_throughput, kernel_row.achieved_occupancy, kernel_row.l1_hit_rate, kernel_row.l2_hit_rate, profile_row.covered 
FROM profile_row LEFT OUTER JOIN attempt ON attempt.id = profile_row.attempt LEFT OUTER JOIN arm_result ON arm_result.attempt = profile_row.attempt AND arm_result.arm = profile_row.arm LEFT OUTER JOIN comparison ON comparison.comparison_id = profile_row.comparison_id LEFT OUTER JOIN environment ON environment.environment_id = coalesce(attempt.environment, profile_row.environment) JOIN kernel_row ON kernel_row.profile_id = profile_row.profile_id;
CREATE VIEW view_fingerprint AS SELECT 'e1840da3f57669b203d6058cb71f56682ecbd53ac81fdea810f54be9a06ed65c' AS fingerprint;
COMMIT;
