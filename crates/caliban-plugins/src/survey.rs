//! What a plugin offers to people and models, as a session would find it.

use caliban_context::{
    Commands, Customization, Invocation, Options, OutputStyles, Places, Profiles, SkillSources,
    Skills,
};

use crate::package::Package;

/// About how many bytes a token has.
const TOKEN: usize = 4;

/// The names that a plugin adds, and what they cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    pub skills: Vec<String>,
    pub commands: Vec<String>,
    pub styles: Vec<String>,
    pub agents: Vec<String>,
    pub servers: Vec<String>,
    /// How many handlers its hooks have.
    pub hooks: usize,
    /// What commands run in a shell when they are typed, by their names.
    pub scripts: Vec<(String, Vec<String>)>,
    /// The style that it insists on.
    pub forced_style: Option<String>,
    pub cost: Cost,
    /// What is worth knowing about its files.
    pub notices: Vec<String>,
}

/// What a plugin costs in tokens, estimated. What the tools of its servers say is not known before
/// they run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cost {
    /// With every request.
    pub always: u64,
    /// When everything of it is used once.
    pub on_demand: u64,
}

impl Survey {
    /// `reserved` are the names of built-in commands.
    pub fn of(package: &Package, reserved: &[&str]) -> Self {
        let root = &package.root;
        let places = Places {
            workspace: root.clone(),
            project: root.clone(),
            home: root.clone(),
            config: root.clone(),
            foreign: root.clone(),
            foreign_instructions: None,
            data: root.clone(),
            notes: root.clone(),
            imports_allowlist: root.clone(),
            plugins: vec![package.place(root.clone())],
        };
        let options = Options {
            skills: SkillSources::Own,
            customization: Customization::Plugins,
            ..Options::bare()
        };
        let mut notices = Vec::new();
        let skills = Skills::load(&places, &options, &mut notices);
        let styles = OutputStyles::load(&places, &options, &mut notices);
        let commands = Commands::load(&places, &options, &skills, reserved, &mut notices);
        let agents = Profiles::load(&places, &options, &mut notices);
        let own = format!("{}:", package.name());
        let mut cost = Cost::default();
        let mut count = |always: usize, on_demand: usize| {
            cost.always += tokens(always);
            cost.on_demand += tokens(on_demand);
        };
        for skill in skills.iter() {
            let body = skill.body().map_or(0, |body| body.len());
            let listed = match skill.invocation() {
                Invocation::ModelAndUser => skill.name().len() + skill.description().len() + 4,
                Invocation::UserOnly => 0,
            };
            count(listed, body);
        }
        for agent in agents.iter() {
            let listed = agent.name().len() + agent.description.len() + 4;
            count(listed, agent.prompt.len());
        }
        let selection = styles.select(None);
        let forced = selection.locked_by.map(|_| selection.style);
        for style in styles.iter().filter(|style| style.name().starts_with(&own)) {
            match forced {
                Some(forced) if forced == style => count(style.body().len(), 0),
                Some(_) | None => count(0, style.body().len()),
            }
        }
        let is_own = |name: &&str| name.starts_with(&own);
        let sorted = |names: Vec<&str>| {
            let names = names.into_iter().filter(is_own);
            names.map(str::to_owned).collect::<Vec<String>>()
        };
        let skill_names: Vec<&str> = skills.iter().map(caliban_context::Skill::name).collect();
        let scripts = commands.iter().filter_map(|command| {
            let scripts = command.scripts();
            (!scripts.is_empty()).then(|| (command.name().to_owned(), scripts))
        });
        let scripts = scripts.collect();
        let command_names = commands.iter().map(caliban_context::Command::name);
        let command_names = command_names
            .filter(|name| !skill_names.contains(name))
            .collect();
        let style_names = styles
            .iter()
            .map(caliban_context::OutputStyle::name)
            .collect();
        Self {
            commands: sorted(command_names),
            styles: sorted(style_names),
            agents: agents.iter().map(|agent| agent.name().to_owned()).collect(),
            servers: package
                .servers
                .keys()
                .map(|name| format!("{own}{name}"))
                .collect(),
            scripts,
            hooks: crate::hooks::handlers(&package.hooks).count(),
            forced_style: forced.map(|style| style.name().to_owned()),
            skills: sorted(skill_names),
            cost,
            notices: notices.iter().map(ToString::to_string).collect(),
        }
    }
}

fn tokens(bytes: usize) -> u64 {
    bytes.div_ceil(TOKEN) as u64
}
